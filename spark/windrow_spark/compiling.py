"""Our few Java classes, compiled in the driver's JVM by the compiler that Spark ships."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

# Names of Scala's sequences, by the word that stands for them in our files.
_SCALA_212 = {"SEQ": "scala.collection.Seq", "ISEQ": "scala.collection.IndexedSeq"}
_SCALA_213 = {
    "SEQ": "scala.collection.immutable.Seq",
    "ISEQ": "scala.collection.immutable.IndexedSeq",
}
_RESOURCE = "org.codehaus.commons.compiler.util.resource.Resource"
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
    scala = str(jvm.scala.util.Properties.versionNumberString())
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
    compiler.compile(files)
    bytecodes = {
        str(path).removesuffix(".class").replace("/", "."): bytes(classes[path]) for path in classes
    }
    by_name = jvm.java.util.HashMap()
    for name, code in bytecodes.items():
        by_name[name] = code
    return Classes(util.reflect.ByteArrayClassLoader(by_name, parent), bytecodes)


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
