"""Protocol jobs: what a request about one comes to, given its picture. Pure functions.

The stores and the model checker call `deciding.decide`; a command becomes a job by `submitting.submit`.
"""
