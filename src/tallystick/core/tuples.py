"""Named tuples where every job and every step makes some.

A class that is called goes through a function of its own; `make` gives the fields in their order to the tuple
that it is, in half the time.

>>> from typing import NamedTuple
>>> class Place(NamedTuple):
...     job_id: str
...     n: int
>>> make(Place, ("job-1", 2))
Place(job_id='job-1', n=2)
"""

from __future__ import annotations

from typing import Final

make: Final = tuple.__new__
