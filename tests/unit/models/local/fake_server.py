"""A stand-in for ``vllm`` and ``llama-server`` that speaks their protocol, and fails as it is told.

``VLLM_FAKE``: ``crash``, ``oom`` and ``hang`` at the start, ``crash-asked`` and ``hang-asked`` when asked.
``VLLM_FAKE_SECONDS``: of loading. Like the real ones it starts a process of its own, here in another session.
"""

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FATE = os.environ.get("VLLM_FAKE", "")
LLAMA = Path(sys.argv[0]).name == "llama-server"
KEY = os.environ["LLAMA_API_KEY" if LLAMA else "VLLM_API_KEY"]
LOADED = time.monotonic() + float(os.environ.get("VLLM_FAKE_SECONDS", "0"))


def say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def flag(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


NAME = flag("--alias" if LLAMA else "--served-model-name")


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""

    def answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if time.monotonic() < LOADED or FATE == "hang":
            loading = {"code": 503, "message": "Loading model", "type": "unavailable_error"}
            self.answer(503, {"error": loading})
        elif self.path == "/health":
            self.answer(200, {"status": "ok"})
        elif self.path == "/v1/models" and self.is_allowed():
            self.answer(200, {"object": "list", "data": [{"id": NAME, "object": "model"}]})
        else:
            self.answer(404, {"error": {"message": "not found"}})

    def is_allowed(self) -> bool:
        return self.headers["Authorization"] == f"Bearer {KEY}"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if FATE == "crash-asked":
            say("RuntimeError: CUDA error: an illegal memory access was encountered")
            os._exit(3)
        if FATE == "hang-asked":
            time.sleep(600)
        if not self.is_allowed() or asked["model"] != NAME:
            self.answer(401, {"error": {"message": f"Unauthorized: {self.headers['Authorization']}"}})
            return
        said = f"answer to {asked['messages'][-1]['content']}"
        content = json.dumps({"text": said}) if "response_format" in asked else "yes"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        self.answer(200, {"object": "chat.completion", "model": NAME, "choices": [choice], "usage": usage})


child = subprocess.Popen(["sleep", "600"], start_new_session=True)
say(f"serving {NAME} with {KEY}; engine {child.pid}")
if FATE == "crash":
    say(*(f"line {number}" for number in range(30)), "ValueError: no such architecture")
    os._exit(1)
if FATE == "oom":
    say("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.00 GiB")
    os._exit(1)
if not LLAMA:
    time.sleep(max(0.0, LOADED - time.monotonic()))
ThreadingHTTPServer(("127.0.0.1", int(flag("--port"))), Handler).serve_forever()
