"""Java's packages, classes and static methods by their names, each looked up once.

py4j asks the JVM at each step of ``jvm.org.apache…`` whether a class of that name exists, and the
JVM looks for it in every jar that it has: that was a twentieth of all a small write took (decision
33).
"""

from __future__ import annotations

from py4j.java_gateway import JavaClass, JavaPackage

from sparkwriter.session.java_failures import Java


class JavaNames:
    """A place in the tree of names that keeps what was found below it.

    As good as the JVM that it was made of: one that was started anew needs another.
    """

    def __init__(self, place: Java) -> None:
        self._place = place

    def __getattr__(self, name: str) -> Java:
        """What has that name here; asked of the JVM the first time alone."""
        found = getattr(self._place, name)
        if isinstance(found, (JavaPackage, JavaClass)):
            found = JavaNames(found)
        # Never a value: a static field is asked for anew.
        if isinstance(found, JavaNames) or callable(found):
            self.__dict__[name] = found
        return found

    def __call__(self, *arguments: object) -> Java:
        """A new object of the class."""
        return self._place(*arguments)
