"""A bare Starlette endpoint that answers 200, served as ours is: `python -m bench.remote_sides.bare`."""

from __future__ import annotations

import json
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def answer(request: Request) -> Response:
    await request.body()
    return Response(b"{}", media_type="application/json")


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    print(json.dumps({"url": url, "key": ""}), flush=True)
    app = Starlette(routes=[Route("/v1/callbacks/{kind}", answer, methods=["POST"])])
    config = uvicorn.Config(app, http="h11", ws="none", log_config=None, access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
