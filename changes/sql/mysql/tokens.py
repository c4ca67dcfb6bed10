"""Splits MySQL's and MariaDB's SQL into tokens, as far as DDL needs it.

A general SQL parser was tried and gives up on many ALTER TABLE statements that people run, and its
tokenizer drops ``/*!50100 … */``, which the server executes: hence this one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

SPACE = r"\t-\r\x20"
"""What is between two words for the server, inside a character class: of ASCII alone. A no-break
or an ideographic space is a letter of a name."""

NAME = r"0-9A-Za-z$_\x80-\uffff"
"""Letters of a name without quotes, inside a character class: any code point of the basic plane
beyond ASCII is one, whatever Unicode calls it."""

_SPACES = re.compile(f"[{SPACE}]+")
_LAST_OF_NAMES = "\uffff"

_LETTER_OF_TEXT = r"[^{quote}\\]|\\.|{quote}{quote}"
_LETTER_WITHOUT_ESCAPES = r"[^{quote}]|{quote}{quote}"


@cache
def _tokens(escapes: bool) -> re.Pattern[str]:
    """The tokens, by whether a backslash escapes: it does not with ``sql_mode =
    'NO_BACKSLASH_ESCAPES'``. Compiled at the first statement: it takes longer than most imports."""
    letter = _LETTER_OF_TEXT if escapes else _LETTER_WITHOUT_ESCAPES
    single, double = letter.format(quote="'"), letter.format(quote='"')
    return re.compile(
        rf"""
          (?P<space>   [{SPACE}]+ | \#[^\n]* | --(?=[\x01-\x20\x7f]|\Z)[^\n]* | /\*(?!M?!).*?\*/ )
        | (?P<open>    /\*M?!(?:[0-9]{{5,6}})?(?![0-9]) )
        | (?P<close>   \*/ )
        | (?P<name>    (?<=[{NAME}`]\.)[{NAME}]+ )
        | (?P<bits>    [bB]'[01]*' | 0b[01]+(?![{NAME}]) )
        | (?P<hex>     [xX]'[0-9A-Fa-f]*' | 0x[0-9A-Fa-f]+(?![{NAME}]) )
        | (?P<string>  [nN]?'(?:{single})*' | "(?:{double})*" )
        | (?P<quoted>  `(?:[^`]|``)+` )
        | (?P<number>  (?:[0-9]+(?:\.[0-9]*)?|(?<![{NAME}`])\.[0-9]+)
                       (?:[eE][+-]?[0-9]+)?(?![{NAME}]) )
        | (?P<word>    [{NAME}]+ )
        | (?P<sign>    [!-~] )
        """,
        re.VERBOSE | re.DOTALL,
    )


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


class NotUnderstood(Exception):
    """The SQL, or a part of it, can't be read with certainty."""


class Token(NamedTuple):
    """``kind`` is word, quoted, string, number, bits, hex or sign; ``text`` is unquoted."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """An unquoted word in upper case; empty for anything else.

        Keywords are ASCII: Python's upper case of a name with a dotless i may be one, too.
        """
        return self.text.upper() if self.kind == "word" and self.text.isascii() else ""


def tokenize(sql: str, *, escapes: bool = True) -> list[Token]:
    """Raises NotUnderstood at a quote or comment that does not end, and at what is no SQL.

    ``escapes``: a backslash in a text escapes; otherwise it is a letter like any other. The
    contents of ``/*! … */`` are SQL, as for a server of that version.
    """
    tokens: list[Token] = []
    place = opened = 0
    letters = _tokens(escapes)
    while place < len(sql):
        found = letters.match(sql, place)
        if found is None or (found.lastgroup == "sign" and _never_ends(sql, place)):
            raise NotUnderstood(f"what begins at {sql[place : place + 20]!r} {_why(sql[place])}")
        kind, end = str(found.lastgroup), found.end()
        if kind == "close" and not opened:  # 2*/* two */3
            kind, end = "sign", place + 1
        opened += {"open": 1, "close": -1}.get(kind, 0)
        if kind not in ("space", "open", "close"):
            kind = "word" if kind == "name" else kind
            text = _unquoted(kind, sql[place:end], escapes=escapes)
            tokens.append(Token(kind, text, place, end))
        place = end
    if opened:
        raise NotUnderstood("a comment that is executed does not end")
    return tokens


def _never_ends(sql: str, place: int) -> bool:
    return sql[place] in "'\"`" or sql.startswith("/*", place)


def _why(character: str) -> str:
    return "does not end" if character in "'\"`/" else "is no SQL"


def _unquoted(kind: str, text: str, *, escapes: bool) -> str:
    if kind == "quoted":
        return text[1:-1].replace("``", "`")
    if kind != "string":
        return text
    text = text[1:] if text[0] in "nN" else text
    doubled = text[0] * 2
    if not escapes:
        return text[1:-1].replace(doubled, text[0])
    return re.sub(rf"{doubled}|\\(.)", _unescaped, text[1:-1], flags=re.DOTALL)


def _unescaped(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped is None:
        return found[0][0]
    return found[0] if escaped in "%_" else _ESCAPES.get(escaped, escaped)


def on_one_line(sql: str) -> str:
    """The text for a message: blanks between words become one, letters that look so stay."""
    return _SPACES.sub(" ", sql).strip(" ")


def words(text: str) -> frozenset[str]:
    """A set of words from one text."""
    return frozenset(text.split())


def split(tokens: Sequence[Token], sign: str) -> list[list[Token]]:
    """Cut at a sign that stands outside all parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "sign":
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if token.text == sign and depth == 0:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts


class Cursor:
    """A place in a list of tokens, with methods that read on from there."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._place = 0

    @property
    def at_end(self) -> bool:
        return self._place >= len(self._tokens)

    def next(self) -> Token:
        """Take one token; raises NotUnderstood at the end."""
        if self.at_end:
            raise NotUnderstood("the statement ends too early")
        self._place += 1
        return self._tokens[self._place - 1]

    def peek(self) -> Token | None:
        return None if self.at_end else self._tokens[self._place]

    def rest(self) -> list[Token]:
        """Take all that is left."""
        tokens = list(self._tokens[self._place :])
        self._place = len(self._tokens)
        return tokens

    def is_words(self, *wanted: str) -> bool:
        """Whether these unquoted words (upper case) come next."""
        ahead = self._tokens[self._place : self._place + len(wanted)]
        return len(ahead) == len(wanted) and all(
            token.keyword == word for token, word in zip(ahead, wanted, strict=True)
        )

    def accept(self, *wanted: str) -> bool:
        """Take these words if they come next."""
        if not self.is_words(*wanted):
            return False
        self._place += len(wanted)
        return True

    def accept_any(self, wanted: frozenset[str]) -> str:
        """Take one of these words if it comes next; the empty text otherwise."""
        token = self.peek()
        if token is None or not token.keyword or token.keyword not in wanted:
            return ""
        self._place += 1
        return token.keyword

    def accept_sign(self, sign: str) -> bool:
        token = self.peek()
        if token is None or token.kind != "sign" or token.text != sign:
            return False
        self._place += 1
        return True

    def name(self) -> str:
        """Take an identifier, bare, in backticks or (ANSI_QUOTES) in double quotes."""
        token = self.next()
        if token.kind not in ("word", "quoted", "string"):
            raise NotUnderstood(f"{token.text!r} where a name should be")
        if max(token.text, default="") > _LAST_OF_NAMES:
            raise NotUnderstood(f"{token.text!r} is no name: servers write ? for some of it")
        return token.text

    def column(self) -> str:
        """Take a column's name; its table's and database's before it are those of the statement.

        MariaDB and older MySQL have ``shop.users.name``, ``users.name`` and ``.name``, and check
        them.
        """
        self.accept_sign(".")
        name = self.name()
        while self.accept_sign("."):
            name = self.name()
        return name

    def group(self) -> list[Token]:
        """Take the tokens in the parentheses that come next, without these."""
        if not self.accept_sign("("):
            raise NotUnderstood("an opening parenthesis is missing")
        start, depth = self._place, 1
        while depth:
            token = self.next()
            if token.kind == "sign":
                depth += {"(": 1, ")": -1}.get(token.text, 0)
        return list(self._tokens[start : self._place - 1])

    def at_group(self) -> bool:
        token = self.peek()
        return token is not None and token.kind == "sign" and token.text == "("
