"""Running the functions of users: in threads and tasks, within their time, whatever they raise."""
