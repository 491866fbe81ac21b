"""Our few Java classes, compiled in the driver's JVM by the compiler that Spark ships."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

_SEQ, _IMMUTABLE_SEQ = "scala.collection.Seq", "scala.collection.immutable.Seq"
_NO_WORDS: Mapping[str, str] = {}


def compiled(
    jvm: Any, package: str, source: str, parent: Any, words: Mapping[str, str] = _NO_WORDS
) -> Any:
    """Return the compiler, after it has compiled a file of classes.

    Args:
        jvm: The driver's JVM.
        package: The Python package that contains the file.
        source: Name of the file.
        parent: Class loader of the classes that the file uses.
        words: Replacements for the words of a template.
    """
    text = resources.files(package).joinpath(source).read_text(encoding="utf-8")
    scala = str(jvm.scala.util.Properties.versionNumberString())
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    # The JVM's name of Scala's `Seq` depends on Scala's version.
    words = {"SEQ": _SEQ if scala.startswith("2.12") else _IMMUTABLE_SEQ, **words}
    compiler.cook(re.sub(r"\b[A-Z]+\b", lambda word: words.get(word[0], word[0]), text))
    return compiler
