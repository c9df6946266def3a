"""The conformance suite: what every store promises, as tests that any store can run.

Write one pytest fixture named `subject` that returns a `Subject` on an empty store, and one class:

    from tallystick.testing.conformance.suite import StoreConformance

    class TestMyStore(StoreConformance):
        ...

The suite sees a store through its protocol, through typed pictures of what is durable (`pictures.py`, made by
the subject), and through real processes that open the same address. It needs pytest and hypothesis.
`pytest -p tallystick.testing.conformance.certificate` says which promises were kept.
"""

from __future__ import annotations
