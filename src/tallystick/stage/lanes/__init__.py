"""Where the functions of a stage are called: on threads, in other processes, in an event loop."""
