"""The memory under a stage, by hand: two workers, one that dies, and what becomes of its item."""

from __future__ import annotations

from tallystick.stage import RetryPolicy, Sequence, SequenceBatch, SlotPolicy

policy = SlotPolicy(lease_ms=1_000, retry=RetryPolicy(attempts_max=2, base_ms=100, jitter=0.0))
events = []
sequence = Sequence(4, policy=policy, events=events.append)

for seq in range(4):
    sequence.dispatch(seq, now_ms=0)

attempt = sequence.start(0, "alice", now_ms=0)
sequence.start(1, "bob", now_ms=0)
sequence.succeed(1, "bob", attempt=1, now_ms=10)
print("ready to commit:", sequence.ready(), "(seq 0 is in the way)")

# Alice is not heard of again. Her lease ends after a second, and seq 0 is offered to anyone.
print(sequence.reclaim(now_ms=1_000))
print("Alice comes late:", sequence.succeed(0, "alice", attempt, now_ms=1_001))

attempt = sequence.start(0, "bob", now_ms=1_100)
sequence.succeed(0, "bob", attempt, now_ms=1_200)
print("committed:", sequence.commit_ready())

# The rest at once, with numpy.
batch = SequenceBatch(sequence)
attempts = batch.start(range(2, 4), "bob", now_ms=1_300)
batch.skip(range(2, 4), "bob", attempts, now_ms=1_400)
print("committed:", sequence.commit_ready(), {s.name: n for s, n in sequence.counts().items() if n})
print(*events, sep="\n")
