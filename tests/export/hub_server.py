"""As much of the Hugging Face Hub as huggingface_hub needs to make a repository, commit files and download them."""

import base64
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit


class Hub:
    """Repositories by name; each has the files of its newest commit."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.commits: dict[str, str] = {}
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()

    def commit(self, repo: str, lines: list[bytes]) -> str:
        """Add the files of a commit, which come as lines of JSON."""
        for line in map(json.loads, lines):
            if line["key"] == "file":
                self.files[repo][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        content = json.dumps([(name, hashlib.sha1(data).hexdigest()) for name, data in self.files[repo].items()])
        self.commits[repo] = hashlib.sha1(content.encode()).hexdigest()
        return self.commits[repo]


class Handler(http.server.BaseHTTPRequestHandler):
    """The requests; `hub` is set by `serve`."""

    hub: Hub

    def log_message(self, *_):
        pass

    def answer(self, content, status=200, headers=()):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **dict(headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_POST(self):
        path, body = urlsplit(self.path).path, self.body()
        self.hub.asked.append(f"POST {path}")
        self.hub.tokens.add(self.headers.get("Authorization"))
        if path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked.get('organization') or 'me'}/{asked['name']}"
            exists = repo in self.hub.files
            self.hub.files.setdefault(repo, {})
            self.hub.private.setdefault(repo, asked.get("private") or asked.get("visibility") == "private")
            self.answer({"url": f"{self.home()}/{repo}", "repoId": repo}, 409 if exists else 200)
        elif path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            names = [each["path"] for each in json.loads(body)["files"]]
            regular = [{"path": n, "uploadMode": "regular", "shouldIgnore": False, "oid": None} for n in names]
            self.answer({"files": regular})
        elif "/commit/" in path:
            repo = path.removeprefix("/api/models/").partition("/commit/")[0]
            oid = self.hub.commit(repo, body.splitlines())
            self.answer({"success": True, "commitOid": oid, "commitUrl": f"{self.home()}/{repo}/commit/{oid}"})
        else:
            self.answer({"error": "unknown"}, 404)

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(f"{self.command} {path}")
        for repo, files in self.hub.files.items():
            if path.startswith(f"/{repo}/resolve/") and (name := path.split("/", 5)[5]) in files:
                etag = hashlib.sha1(files[name]).hexdigest()
                head = {"ETag": f'"{etag}"', "X-Repo-Commit": self.hub.commits[repo], "Accept-Ranges": "bytes"}
                return self.answer(files[name], 200, head)
            if path.startswith(f"/api/models/{repo}/tree/"):
                found = [{"type": "file", "path": n, "size": len(d), "oid": "0" * 40} for n, d in files.items()]
                return self.answer(found)
            if path in (f"/api/models/{repo}", f"/api/models/{repo}/revision/main"):
                siblings = [{"rfilename": name} for name in files]
                return self.answer({"id": repo, "sha": self.hub.commits.get(repo, "0" * 40), "siblings": siblings})
        return self.answer({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def home(self) -> str:
        return f"http://{self.headers['Host']}"


@contextmanager
def serve() -> Iterator[tuple[str, Hub]]:
    """The address of a server on this machine, and what it holds."""
    hub = Hub()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("OfThisHub", (Handler,), {"hub": hub}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", hub
    finally:
        server.shutdown()
        server.server_close()
