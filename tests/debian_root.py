"""A newer Debian in a folder, for programs that the machine's own release has only older.

Packages come from the mirror in the machine's apt sources, checked by apt with its keys, and are
unpacked without being installed.
"""

import shutil
import subprocess

MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders that are links in a merged /usr, which base-files would make."""
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
"""The keys of Debian's archive (package debian-archive-keyring)."""
ANYBODY = "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\n"
"""Lets anybody in: what is inside is a test's."""


def unpacked(suite, packages, folder):
    """Unpack packages of a Debian suite with all that they depend on; the root of the tree."""
    uri = mirror()
    apt, root = folder / "apt", folder / "root"
    for name in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/empty"):
        (apt / name).mkdir(parents=True)
    (apt / "etc" / "sources.list").write_text(f"deb [signed-by={KEYS}] {uri} {suite} main\n")
    (apt / "status").write_text("")
    places = {
        **{"Dir::Etc": apt / "etc", "Dir::State": apt / "state", "Dir::Cache": apt / "cache"},
        **{"Dir::Etc::PreferencesParts": apt / "etc" / "empty"},
        **{"Dir::Etc::SourceParts": apt / "etc" / "empty", "APT::Sandbox::User": "root"},
        **{"Dir::State::status": apt / "status", "Acquire::Languages": "none"},
    }
    options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
    apt_get("apt-get", *options, "update")
    words = ("--yes", "--no-install-recommends", "--download-only", "install", *packages)
    apt_get("apt-get", *options, *words)
    root.mkdir(mode=0o755)
    for package in sorted((apt / "cache" / "archives").glob("*.deb")):
        apt_get("dpkg-deb", "--extract", str(package), str(root))
    shutil.rmtree(apt)
    for name in MERGED:
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for name in ("passwd", "group"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    for name in ("frr", "other"):
        (root / "etc" / "pam.d" / name).write_text(ANYBODY)
    return root


def mirror():
    """The address of Debian's archive in the machine's sources."""
    fields = ("--format", "$(REPO_URI)", "Created-By: Packages")
    for uri in apt_get("apt-get", "indextargets", *fields).splitlines():
        if uri.endswith("/debian/"):
            return uri
    raise LookupError("no Debian archive in the sources of apt")


def apt_get(*command):
    """What a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout


def prepared(root, shared):
    """Mount what programs in a root need, and a folder at its own place; in a mount namespace."""
    for name in ("proc", "dev", "run", "tmp", "var/lib/frr", "var/tmp/frr"):
        (root / name).mkdir(parents=True, exist_ok=True)
    inside = root / shared.relative_to("/")
    subprocess.run(["mount", "--bind", str(root), str(root)], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    subprocess.run(["mount", "--rbind", "/dev", str(root / "dev")], check=True)
    for name in ("run", "tmp"):
        subprocess.run(["mount", "-t", "tmpfs", name, str(root / name)], check=True)
    inside.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "--bind", str(shared), str(inside)], check=True)
    for name in ("run/frr", "var/lib/frr", "var/tmp/frr"):
        (root / name).mkdir(exist_ok=True)
        shutil.chown(root / name, "frr", "frr")
