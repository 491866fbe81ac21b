"""Our few Java classes, compiled in the driver's JVM by the compiler that Spark ships.

What a driver has compiled is kept for those after it, which need the same classes: see `class_cache`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from windrow_core.version import __version__
from windrow_spark import class_cache

# Names of Scala's sequences, by the word that stands for them in our files.
_SCALA_212 = {"SEQ": "scala.collection.Seq", "ISEQ": "scala.collection.IndexedSeq"}
_SCALA_213 = {
    "SEQ": "scala.collection.immutable.Seq",
    "ISEQ": "scala.collection.immutable.IndexedSeq",
}
_RESOURCE = "org.codehaus.commons.compiler.util.resource.Resource"
# The parts of Spark that our classes use: core, catalyst and sql; and the compiler itself.
_OF_SPARK = (
    "org.apache.spark.SparkContext",
    "org.apache.spark.sql.catalyst.expressions.Expression",
    "org.apache.spark.sql.execution.SparkPlan",
    "org.codehaus.janino.Compiler",
)
_NO_WORDS: Mapping[str, str] = {}


class Classes(NamedTuple):
    """Classes in the driver's JVM.

    Attributes:
        loader: Their class loader.
        bytecodes: The code of each class, by its name.
    """

    loader: Any
    bytecodes: dict[str, bytes]


def compiled(
    jvm: Any,
    package: str,
    sources: Sequence[str],
    parent: Any,
    words: Mapping[str, str] = _NO_WORDS,
) -> Classes:
    """Compile files of classes, which may use each other.

    Args:
        jvm: The driver's JVM.
        package: The Python package that contains the files.
        sources: Names of the files.
        parent: Class loader of the other classes that the files use.
        words: Replacements for the words of a template.
    """
    key = _key(jvm, package, sources, parent, words)
    caches = class_cache.users_caches()
    bytecodes = None if caches is None else class_cache.kept(caches, key)
    if bytecodes is None:
        bytecodes = _compiled_anew(jvm, package, sources, parent, words)
        if caches is not None:
            class_cache.keep(caches, key, bytecodes)
    by_name = jvm.java.util.HashMap()
    for name, code in bytecodes.items():
        by_name[name] = code
    reflect = jvm.org.codehaus.commons.compiler.util.reflect
    return Classes(reflect.ByteArrayClassLoader(by_name, parent), bytecodes)


def _compiled_anew(
    jvm: Any, package: str, sources: Sequence[str], parent: Any, words: Mapping[str, str]
) -> dict[str, bytes]:
    scala = _scala(jvm)
    util, janino = jvm.org.codehaus.commons.compiler.util, jvm.org.codehaus.janino
    texts, classes = util.resource.MapResourceFinder(), jvm.java.util.HashMap()
    resource = jvm.java.lang.Class.forName(_RESOURCE)
    files = jvm.java.lang.reflect.Array.newInstance(resource, len(sources))
    for place, source in enumerate(sources):
        template = resources.files(package).joinpath(source).read_text(encoding="utf-8")
        text = source_text(template, scala, words)
        files[place] = util.resource.StringResource(f"windrow/{source}", text)
        texts.addResource(files[place])
    compiler = janino.Compiler(texts, janino.ClassLoaderIClassLoader(parent))
    compiler.setClassFileCreator(util.resource.MapResourceCreator(classes))
    # Static methods of Java's interfaces, as Scala's traits become, exist since this version.
    compiler.setTargetVersion(8)
    # Stack traces name files and lines.
    compiler.setDebugSource(True)
    compiler.setDebugLines(True)
    compiler.compile(files)
    return {
        str(path).removesuffix(".class").replace("/", "."): bytes(classes[path]) for path in classes
    }


def _key(
    jvm: Any, package: str, sources: Sequence[str], parent: Any, words: Mapping[str, str]
) -> str:
    """Return a hash of all that the code of classes depends on."""
    bases = [*_OF_SPARK, *(word for word in words.values() if "." in word)]
    parts = [
        __version__,
        _digest("windrow_spark"),
        _digest(package),
        list(sources),
        dict(words),
        _scala(jvm),
        str(jvm.java.lang.System.getProperty("java.version")),
        [_origin(jvm, parent, name) for name in bases],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@cache
def _digest(package: str) -> str:
    """Return a hash of all our Java files in a package, as they use each other."""
    digest = hashlib.sha256()
    rooms = [resources.files(package)]
    for room in rooms:
        for file in sorted(room.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".java"):
                digest.update(file.name.encode() + file.read_bytes())
            elif file.is_dir():
                rooms.append(file)
    return digest.hexdigest()


def _origin(jvm: Any, loader: Any, name: str) -> tuple[str, int]:
    """Return the archive that a class comes from, and its size, in which builds of Spark differ."""
    source = loader.loadClass(name).getProtectionDomain().getCodeSource()
    # Classes of ours, which `_digest` covers, come from memory.
    location = None if source is None else source.getLocation()
    path = "" if location is None else str(location.getPath())
    return path.rpartition("/")[2], jvm.java.io.File(path).length() if path else 0


def _scala(jvm: Any) -> str:
    return str(jvm.scala.util.Properties.versionNumberString())


def new_object(jvm: Any, package: str, source: str, parent: Any, name: str) -> Any:
    """Return a new object of the class `name`, after compiling its file; see `compiled`."""
    return compiled(jvm, package, [source], parent).loader.loadClass(name).newInstance()


def source_text(template: str, scala: str, words: Mapping[str, str] = _NO_WORDS) -> str:
    """Return the text of classes for a version of Scala.

    Args:
        template: The text of their file.
        scala: The version, on which the JVM's names of Scala's sequences depend.
        words: Replacements for more words of the template.
    """
    words = {**(_SCALA_212 if scala.startswith("2.12") else _SCALA_213), **words}
    return re.sub(r"\b[A-Z]+\b", lambda word: words.get(word[0], word[0]), template)
