"""Whether this machine has a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from windrow_calls.errors import WindrowError

_OLDEST_JAVA = 17


@dataclass(eq=False)
class MissingJavaError(WindrowError):
    """There is no Java, or one that is too old for Spark."""

    reason: str
    message = "Spark needs Java 17 or newer, but {reason}: {remedy}"
    remedy = (
        "install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew "
        "install openjdk@17; without root: unpack one from https://adoptium.net), and set "
        "JAVA_HOME to its folder if `java` is not on the PATH"
    )


def require_java() -> None:
    """Make sure that there is a Java that Spark can run on."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        raise MissingJavaError(f"there is none in JAVA_HOME ({home})" if home else "none was found")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if answer.returncode or version is None:
        raise MissingJavaError(f"{java} does not run")
    if int(version[1]) < _OLDEST_JAVA:
        raise MissingJavaError(f"{java} is Java {version[1]}")
