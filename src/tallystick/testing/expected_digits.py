"""The digits that conformance expects of a store, written by hand as specification 004 has them.

No other module of the package has digits: everything else asks `core.digits`. Entries are added to those that
end in zeros.
"""

from __future__ import annotations

from typing import Final

NOTHING: Final = int("000000000000000")
"""An activity that was never entered, or a message that was never taken."""

OPENED: Final = int("001100000000000")
"""An activity that is open: leg 1 entered once and complete."""

SETTLED: Final = int("001111000000001")
"""An activity that was answered once, or an inline step at its first try: all but step 3."""

CLOSED: Final = int("001111100000001")
"""An activity whose only message has closed the job, or a job that ended in its first segment."""

CLOSED_AT_THIRD: Final = int("003111100000001")
"""The same with a third directive."""

COUNTED: Final = int("001111000000000")
"""A group in which children have been counted; the entries are added."""

GROUP_CLOSED: Final = int("001111100000000")
"""A group that a child has closed; the entries are added."""

WORD_SETTLED: Final = int("000011000000001")
"""A message that has done its part and closed nothing."""

WORD_CLOSED: Final = int("000111100000001")
"""A message, or the start, that was entered first and has closed the job."""

CHILD: Final = int("000011000000000")
"""The word of a child that was counted; its entry is added."""

CLOSER: Final = int("000111100000000")
"""The word of the child that has closed its group; its entry is added."""
