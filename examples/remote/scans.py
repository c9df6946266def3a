"""Scans are read, translated and indexed by three services; the store is that of the variable TALLY_URL."""

from __future__ import annotations

from tallystick import RemoteStep, Retry, Tally

app = Tally()
soon = Retry(9, first="200ms", longest="1s")
app.protocol(
    "scan",
    request_types=["scan"],
    steps=[
        RemoteStep("ocr", service="ocr", ack="3s", lease="3s", retry=soon),
        RemoteStep("translate", service="translate", ack="3s", lease="3s", retry=soon),
        RemoteStep("index", service="index", ack="3s", lease="3s", retry=soon),
    ],
)
