"""What a person says of an effect that is in doubt: it happened, it did not, or call it again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from tallystick.app.api.control import Wish, process_user
from tallystick.app.replay.context import refuse_inside
from tallystick.app.running.twins import twin_of
from tallystick.app.values.codec import encode
from tallystick.core.effects.requests import Says, Settled, SettleEffect
from tallystick.core.limits import check_storable
from tallystick.defaults import TENANT
from tallystick.errors import BadInput, InvariantBroken, NotResolved
from tallystick.store.api import Effects

if TYPE_CHECKING:
    from tallystick.app.api.runtime import Runtime
    from tallystick.store.api import Outcome

T = TypeVar("T")
UNSAID: Final = object()
"""What stands for a result that was not given."""


class ResolvingKeys:
    """The part of a Tally by which a person answers for an effect whose job has ended, or is not known."""

    def resolve(
        self,
        *,
        key: str,
        effect: str = "",
        tenant: str = TENANT,
        happened: object = UNSAID,
        did_not_happen: bool = False,
        retry: bool = False,
        by: str = "",
    ) -> Settled:
        """Say what came of the effect in doubt that has this key; the rest as `job.resolve` does.

        A job that was ended by force has left it open. `effect` is its name, where several share a key.
        """
        says, runtime = said(happened, did_not_happen, retry), self.runtime()
        name = effect.partition("#")[0]
        found = [row for row in _effects(runtime).open_effects(tenant, key) if name in ("", row.effect)]
        if len(found) != 1:
            names = ", ".join(row.effect for row in found)
            why = f"several effects have it: {names}; say which one" if found else "no effect in doubt has it"
            raise NotResolved(f"key {key!r}: {why}")
        (row,) = found
        wish = resolving(runtime, row.job_id, says, happened, row.unit, key, by)
        return wish.settle(runtime, runtime.committer.call(wish.bundle))

    resolve_aio = twin_of(resolve)

    @abstractmethod
    def runtime(self) -> Runtime:
        """Return what it has open."""


def late_reports(runtime: Runtime, job_id: str) -> list[tuple[int, str]]:
    """Return what calls of effects of a job have said too late, for the person who has to answer."""
    return runtime.store.inspect().late_reports(job_id)


def _effects(runtime: Runtime) -> Effects:
    store = runtime.store
    if not isinstance(store, Effects):
        raise BadInput(f"{store.url} keeps no effects; SQLite and PostgreSQL do")
    return store


class Resolving:
    """The part of a job by which a person answers for its effects."""

    __slots__ = ()

    id: str
    _runtime: Callable[[], Runtime]

    def resolve(
        self,
        *,
        happened: object = UNSAID,
        did_not_happen: bool = False,
        retry: bool = False,
        effect: str = "",
        key: str = "",
        by: str = "",
    ) -> Settled:
        """Say what came of an effect that is in doubt; who said it, and when, is on the books.

        `happened` is what the call would have returned. `did_not_happen`: it did not, and can no longer; it
        is called again if tries are left. `retry` calls it again whatever happened. With several in doubt
        `effect` (`charge`, `charge#2`) or `key` says which one. Refused while a worker may be at it.
        """
        says = said(happened, did_not_happen, retry)
        return self._say(resolving(self._runtime(), self.id, says, happened, effect, key, by))

    resolve_aio = twin_of(resolve)

    @abstractmethod
    def _say(self, wish: Wish[T]) -> T: ...


def said(happened: object, did_not_happen: bool, retry: bool) -> Says:  # noqa: FBT001 (as they were given)
    """Return the one answer that was given."""
    answers = {Says.HAPPENED: happened is not UNSAID, Says.DID_NOT_HAPPEN: did_not_happen, Says.RETRY: retry}
    given = [answer for answer, so in answers.items() if so]
    if len(given) != 1:
        raise BadInput("say one thing: happened=..., did_not_happen=True or retry=True")
    return given[0]


def resolving(
    runtime: Runtime, job_id: str, says: Says, happened: object, effect: str, key: str, by: str
) -> Wish[Settled]:
    """Return the wish that an answer is written down."""
    refuse_inside(f"resolve an effect of job {job_id}")
    unit = effect if not effect or "#" in effect else f"{effect}#1"
    result = _result(runtime, job_id, unit, key, happened) if says is Says.HAPPENED else None
    who = check_storable("by", by or process_user())

    def settle(runtime: Runtime, outcome: Outcome) -> Settled:
        if not isinstance(outcome, Settled):
            raise InvariantBroken(f"an answer about an effect was answered with {outcome!r}")
        if outcome not in (Settled.DONE, Settled.AGAIN):
            raise NotResolved(f"job {job_id}: {outcome.value}", job_id=job_id)
        runtime.poke()
        return outcome

    return Wish((SettleEffect(job_id, says, who, unit, key, result),), settle)


def _result(runtime: Runtime, job_id: str, unit: str, key: str, happened: object) -> str:
    """Return what a call would have returned; refused if the effect is declared here and returns no such."""
    text = encode(happened, "what the effect returned")
    meant = {
        row.effect
        for row in _effects(runtime).effects(job_id)
        if row.is_open and key in ("", row.key) and unit in ("", row.unit, row.unit.partition("/")[2])
    }
    for name in meant if len(meant) == 1 else ():
        if name in runtime.effects:
            runtime.effects[name].signature.result.decode(text, f"the result that is given for {name}")
    return text
