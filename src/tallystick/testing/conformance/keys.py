"""API keys: kept as they were made, by the clock of the store, and revoked for good."""

from __future__ import annotations

from tallystick.core.remote.keys import AddKey, ApiKey, RevokeKey, new_key
from tallystick.errors import BadInput
from tallystick.testing.conformance.drafts import outcome_of
from tallystick.testing.conformance.subject import Subject


def _wish(kid: str = "k1", lives_ms: int | None = None) -> AddKey:
    return new_key(kid, "secret", "acme", ["work", "jobs:read"], ["ocr"], lives_ms)


class Keys:
    """The keys of clients over HTTP."""

    def test_a_key_is_kept_without_its_secret(self, subject: Subject) -> None:
        made = outcome_of(subject.store, _wish())
        assert isinstance(made, ApiKey)
        assert made == subject.store.key("k1")
        assert (made.tenant_id, made.allows("work"), made.allows("admin")) == ("acme", True, False)
        assert made.is_opened_by("secret")
        assert not made.is_opened_by("secreT")
        assert not any("secret" in text for text in map(str, made))

    def test_a_key_is_over_when_its_time_is(self, subject: Subject) -> None:
        made = outcome_of(subject.store, _wish(lives_ms=1_000))
        assert isinstance(made, ApiKey)
        assert made.is_live(made.created_at + 999)
        assert not made.is_live(made.created_at + 1_000)

    def test_a_revoked_key_stays_revoked(self, subject: Subject) -> None:
        outcome_of(subject.store, _wish())
        assert outcome_of(subject.store, RevokeKey("k1")) is True
        revoked = subject.store.key("k1")
        subject.clock.advance(1_000)
        assert outcome_of(subject.store, RevokeKey("k1")) is True
        assert subject.store.key("k1") == revoked
        assert revoked is not None
        assert not revoked.is_live(revoked.created_at)

    def test_no_key_is_told_from_one_that_was_revoked(self, subject: Subject) -> None:
        assert outcome_of(subject.store, RevokeKey("none")) is False
        assert subject.store.key("none") is None

    def test_two_keys_never_share_a_name(self, subject: Subject) -> None:
        first, second = subject.store.apply([(_wish(),), (_wish(),)])
        assert isinstance(first, ApiKey)
        assert isinstance(second, BadInput)
        assert subject.store.keys() == [first]
