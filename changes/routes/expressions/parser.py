"""Reads the text of an expression: SQL's operators, CASE, CAST, literals, a few functions.

Nothing else can be written: no query, no aggregate, no variable. So an expression reaches neither
files nor the network, and takes time and memory in proportion to its length and to its rows.
"""

from __future__ import annotations

import pyarrow as pa

from changes.formats.engine.configured_types import configured_type
from changes.model.types import TIMESTAMP, TextForm
from changes.routes.expressions.syntax import (
    END,
    NULL,
    RESERVED,
    Call,
    Case,
    Cast,
    ColumnRef,
    ExpressionError,
    ExpressionToken,
    Literal,
    Node,
    number,
    tokens_of,
)

LONGEST = 4096
"""Characters of an expression. All of it is run for each batch."""

DEEPEST = 40
"""Parts inside each other. The parser calls itself for each."""

MOST_OPERATORS = 100
"""Each is one pass over the rows of a batch, and one part inside another."""

_COMPARED = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def parse(text: str) -> Node:
    """Read an expression. Raises ExpressionError."""
    if len(text) > LONGEST:
        raise ExpressionError(f"it has {len(text)} characters; {LONGEST} are allowed")
    return _Parser(list(tokens_of(text))).whole()


class _Parser:
    """Reads tokens from left to right; each method reads what binds tighter than the one before."""

    def __init__(self, tokens: list[ExpressionToken]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._operators = 0

    def whole(self) -> Node:
        node = self._either()
        if self._next is not END:
            raise ExpressionError(f"{self._next.text!r} is not expected there")
        return node

    @property
    def _next(self) -> ExpressionToken:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    def _take(self, *words: str) -> str | None:
        """The next word or sign if it is one of these."""
        word = self._next.word
        if not word or word not in words:
            return None
        self._at += 1
        return word

    def _want(self, word: str) -> None:
        if self._take(word) is None:
            raise ExpressionError(f"{word.upper()} is expected, not {self._next.text!r}")

    def _count(self) -> None:
        self._operators += 1
        if self._operators > MOST_OPERATORS:
            raise ExpressionError(f"it has more than {MOST_OPERATORS} operators")

    def _binary(self, sign: str, left: Node, right: Node) -> Node:
        self._count()
        return Call(sign, (left, right))

    def _unary(self, name: str, arg: Node) -> Node:
        self._count()
        return Call(name, (arg,))

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(f"more than {DEEPEST} parts are inside each other")
        node = self._both()
        while self._take("or"):
            node = self._binary("or", node, self._both())
        self._depth -= 1
        return node

    def _both(self) -> Node:
        node = self._negated()
        while self._take("and"):
            node = self._binary("and", node, self._negated())
        return node

    def _negated(self) -> Node:
        count = 0
        while self._take("not"):
            count += 1
        node = self._compared()
        return Call("not", (node,)) if count % 2 else node

    def _compared(self) -> Node:
        node = self._joined()
        while True:
            if sign := self._take(*_COMPARED):
                node = self._binary(_COMPARED[sign], node, self._joined())
            elif self._take("is"):
                negated = self._take("not")
                self._want("null")
                node = _maybe_not(negated, self._unary("is null", node))
            elif self._next.word in ("not", "in", "between", "like"):
                node = self._tested(node)
            else:
                return node

    def _tested(self, node: Node) -> Node:
        negated = self._take("not")
        self._count()
        if self._take("in"):
            return _maybe_not(negated, Call("in", (node, *self._list())))
        if self._take("like"):
            return _maybe_not(negated, Call("like", (node, self._joined())))
        self._want("between")
        lower = self._joined()
        self._want("and")
        bounds = Call(">=", (node, lower)), Call("<=", (node, self._joined()))
        return _maybe_not(negated, Call("and", bounds))

    def _joined(self) -> Node:
        node = self._sum()
        while self._take("||"):
            node = self._binary("||", node, self._sum())
        return node

    def _sum(self) -> Node:
        node = self._product()
        while sign := self._take("+", "-"):
            node = self._binary(sign, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._signed()
        while sign := self._take("*", "/", "%", "div"):
            node = self._binary(sign, node, self._signed())
        return node

    def _signed(self) -> Node:
        negative = False
        while sign := self._take("+", "-"):
            negative ^= sign == "-"
        if not negative:
            return self._single()
        if self._next.kind == "number":
            self._at += 1
            return number("-" + self._tokens[self._at - 1].text)
        return Call("negate", (self._single(),))

    def _single(self) -> Node:
        token = self._next
        self._at += 1
        match token.kind:
            case "number":
                return number(token.text)
            case "text":
                return Literal(token.text[1:-1].replace("''", "'"), pa.string())
            case "quoted":
                mark = token.text[0]
                return ColumnRef(token.text[1:-1].replace(mark * 2, mark))
            case "word":
                return self._word(token)
        if token.text == "(":
            node = self._either()
            self._want(")")
            return node
        raise ExpressionError(f"a value is expected, not {token.text!r}")

    def _word(self, token: ExpressionToken) -> Node:
        word = token.word
        match word:
            case "true" | "false":
                return Literal(word == "true", pa.bool_())
            case "null":
                return NULL
            case "case":
                return self._case()
            case "cast":
                return self._cast()
            case "date" | "timestamp" if self._next.kind == "text":
                return Cast(self._single(), word, pa.date32() if word == "date" else TIMESTAMP)
        if word in RESERVED:
            raise ExpressionError(f"a value is expected, not {token.text!r}")
        if self._next.text == "(" and self._next.kind == "sign":
            return Call(word, self._list())
        return ColumnRef(token.text)

    def _list(self) -> tuple[Node, ...]:
        self._want("(")
        if self._take(")"):
            return ()
        found = [self._either()]
        while self._take(","):
            found.append(self._either())
        self._want(")")
        return tuple(found)

    def _case(self) -> Node:
        """Both forms: CASE WHEN condition, and CASE value WHEN value."""
        value = None if self._next.word == "when" else self._either()
        branches = []
        while self._take("when"):
            condition = self._either()
            if value is not None:
                condition = Call("=", (value, condition))
            self._want("then")
            branches.append((condition, self._either()))
        if not branches:
            raise ExpressionError("a CASE without WHEN")
        default = self._either() if self._take("else") else NULL
        self._want("end")
        return Case(tuple(branches), default)

    def _cast(self) -> Node:
        self._want("(")
        arg = self._either()
        self._want("as")
        words = ""
        while self._next is not END and not (self._next.text == ")" and "(" not in words):
            if self._next.text == ")":
                words += ")"
                self._at += 1
                break
            words += (
                self._next.text if self._next.kind in ("sign", "number") else f" {self._next.text}"
            )
            self._at += 1
        self._want(")")
        return Cast(arg, words.strip(), _type(words.strip()))


def _maybe_not(negated: str | None, node: Node) -> Node:
    return Call("not", (node,)) if negated else node


def _type(words: str) -> pa.DataType:
    try:
        kind = configured_type(words)
    except ValueError as error:
        raise ExpressionError(f"CAST: {error}") from error
    if kind.form is TextForm.TIME:
        raise ExpressionError("CAST: a time of MySQL is text: use string")
    return kind.arrow
