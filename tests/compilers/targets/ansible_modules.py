"""A Python for Ansible's modules that has imported already what all of them import.

`ansible_modules.py SOCKET` waits at a socket and forks for each module. `CLIENT` is the program
that Ansible takes for Python: it hands over its words, folder, environment and files, and ends with
the exit code of the module.
"""

from __future__ import annotations

import marshal
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

CLIENT = """#!{python} -IS
import marshal, os, sys
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socket
server = socket(AF_UNIX)
server.connect({path!r})
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
request = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
sent = server.sendmsg([request], [(SOL_SOCKET, SCM_RIGHTS, files)])
server.sendall(request[sent:])
server.shutdown(SHUT_WR)
sys.exit(server.recv(1)[0])
"""


@contextmanager
def ready_python(folder: Path) -> Iterator[Path]:
    """The program that Ansible takes for Python, while the process that it asks is there."""
    program = folder / "python"
    with ExitStack() as stack:
        path = f"{stack.enter_context(TemporaryDirectory(dir='/tmp'))}/socket"  # a short name
        program.write_text(CLIENT.format(python=sys.executable, path=path))
        program.chmod(0o755)
        command = [sys.executable, __file__, path]
        server = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        try:
            assert server.stdout
            assert server.stdout.readline() == b"ready\n"
            yield program
        finally:
            server.terminate()


def serve(path: str) -> None:
    """Fork for each module, one after the other; only the forked process returns, or exits."""
    import_module("ansible.module_utils.basic")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            with client:
                module = os.fork()
                if not module:
                    run(client)
                    return
                _, status = os.waitpid(module, 0)
                client.send(bytes([os.waitstatus_to_exitcode(status) & 255]))


def run(client: socket.socket) -> None:
    """Run the module that a client asks for, with its files."""
    request, files, _, _ = socket.recv_fds(client, 1 << 20, 3)
    while more := client.recv(1 << 20):
        request += more
    words, folder, environment = marshal.loads(request)  # noqa: S302 (of the client above)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
