"""Bare FastAPI, whose handler parses the JSON and answers a few bytes."""

import argparse
from typing import Any

import uvicorn
from fastapi import FastAPI, Request

app = FastAPI()


@app.post("/v1/{name}")
async def parse(name: str, request: Request) -> dict[str, Any]:
    """Parse a request."""
    body = await request.json()
    return {"members": len(body)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--http", default="httptools")
    parser.add_argument("--loop", default="uvloop")
    options = parser.parse_args()
    uvicorn.run(
        app,
        port=options.port,
        http=options.http,
        loop=options.loop,
        log_level="error",
        access_log=False,
    )
