"""Java's regular expressions, which are Spark's, read and written again for RE2, which needs linear time.

Both engines take the leftmost match and try alternatives in order, but `.`, `\\s`, `$`, `(?i)` and classes differ. So
every set of characters is written as ranges, and what RE2 cannot do in linear time is refused by name: back references,
lookaround, possessive quantifiers. `\\b` is that of ASCII letters: what it means beyond them depends on the version of
Java.

`$` also holds before a line end at the end of the text. RE2 cannot look ahead, so such a text gets a mark there, and
the second form of the pattern reads the mark as `$`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from vedette.language import code_points as cp
from vedette.language.code_points import CodePoints

MARK = "\U0010ffff"  # not a character; before the last line end of a text
STAND_IN = "\U0010fffe"  # not a character either; for the mark where it is part of a text
_MARKED: CodePoints = ((cp.MOST, cp.MOST),)
_PAIR: CodePoints = ((cp.MOST - 1, cp.MOST),)
MAX_LENGTH = 10_000
_MAX_DEPTH = 200
_SIMPLE = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CLASSES = {"d": cp.DIGITS, "w": cp.WORD, "s": cp.SPACE, "h": cp.HORIZONTAL, "v": cp.VERTICAL}
_REFUSED = {
    "(?=": "lookahead", "(?!": "lookahead", "(?<=": "lookbehind", "(?<!": "lookbehind", "(?>": "an atomic group",
}  # fmt: skip


class BadRegexError(Exception):
    """A regular expression that is invalid or not supported, and the place in it."""

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(f"{reason}, at character {place + 1} of the regular expression")


@dataclass(frozen=True)
class Translated:
    """A pattern for RE2, and one for texts with a mark before their last line end, if that makes a difference."""

    plain: str
    marked: str | None
    n_groups: int
    may_be_empty: bool
    has_boundary: bool  # it has a \\b
    required: str  # a string that every match contains
    tells_mark: bool  # a class has only one of the mark and its stand-in
    repeats_empty: bool  # something that may be empty is repeated: what groups hold then differs between engines


@dataclass(frozen=True)
class _Flags:
    i: bool = False
    d: bool = False
    m: bool = False
    s: bool = False
    x: bool = False


@dataclass
class _Part:
    """A part of the pattern in both forms."""

    plain: str
    marked: str
    is_empty: bool = True  # it may match the empty string
    dollars: int = 0  # how many $ one way through it has
    is_atom: bool = False  # a quantifier may follow
    looks: bool = False  # it has a ^ or \\b
    literal: str = ""  # the one character that it matches
    required: str = ""  # a string that every match contains


@dataclass
class _Reader:
    text: str
    place: int = 0
    flags: _Flags = field(default_factory=_Flags)
    n_groups: int = 0
    names: set[str] = field(default_factory=set)
    repeats_empty: bool = False
    has_boundary: bool = False
    tells_mark: bool = False
    depth: int = 0

    def refuse(self, reason: str, place: int | None = None) -> BadRegexError:
        return BadRegexError(reason, self.place if place is None else place)

    def peek(self, n: int = 1) -> str:
        return self.text[self.place : self.place + n]

    def take(self) -> str:
        if self.place >= len(self.text):
            raise self.refuse("it is incomplete")
        self.place += 1
        return self.text[self.place - 1]

    def skip_comments(self) -> None:
        while self.flags.x and self.peek() and (self.peek() in " \t\n\x0b\f\r" or self.peek() == "#"):
            if self.take() == "#":
                while self.peek() and self.peek() not in "\n\r\x85\u2028\u2029":
                    self.take()

    # -- structure

    def alternatives(self) -> _Part:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.refuse("it nests too deeply")
        parts = [self.sequence()]
        while self.peek() == "|":
            self.take()
            parts.append(self.sequence())
        self.depth -= 1
        if len(parts) == 1:
            return parts[0]
        return _Part(
            "|".join(part.plain for part in parts),
            "|".join(part.marked for part in parts),
            any(part.is_empty for part in parts),
            max(part.dollars for part in parts),
            looks=any(part.looks for part in parts),
        )

    def sequence(self) -> _Part:
        plain, marked, is_empty, dollars, looks = [], [], True, 0, False
        run, required = "", ""  # the literal characters up to here, and the longest string so far
        while True:
            self.skip_comments()
            if self.peek() in ("", "|", ")"):
                break
            start = self.place
            part = self.quantified(self.atom(), start)
            plain.append(part.plain)
            marked.append(part.marked)
            is_empty = is_empty and part.is_empty
            if dollars and (part.dollars or part.looks):
                raise self.refuse("a ^, $ or \\b after a $ is not supported")
            dollars, looks = dollars + part.dollars, looks or part.looks
            run = run + part.literal if part.literal else ""
            required = max(required, run, part.required, key=len)
        return _Part("".join(plain), "".join(marked), is_empty, dollars, looks=looks, required=required)

    def quantified(self, part: _Part, begun: int) -> _Part:
        """The part, which begins at `begun`, with the quantifier after it."""
        self.skip_comments()
        start, sign = self.place, self.peek()
        if sign not in ("*", "+", "?", "{") or not sign:
            return part
        if not part.is_atom:
            raise self.refuse("a quantifier of something without characters is not supported")
        self.take()
        least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}.get(sign, (0, 0))
        if sign == "{":
            least, most = self.counts(start)
            sign = f"{{{least}}}" if most == least else f"{{{least},{'' if most < 0 else most}}}"
        if self.peek() == "+":
            raise self.refuse("a possessive quantifier is not supported")
        if self.peek() == "?":
            sign += self.take()
        self.skip_comments()
        if self.peek() and self.peek() in "*+?{":
            raise self.refuse("a quantifier after a quantifier is not supported; use a group")
        if part.dollars and most not in (0, 1):
            raise self.refuse("a repetition of $ is not supported", start)
        if "\\R" in self.text[begun:start] and most not in (0, 1):  # Java does not try the other way to read \r\n
            raise self.refuse("a repetition of \\R is not supported", start)
        if part.is_empty and most not in (0, 1):
            self.repeats_empty = True
        return replace(
            part,
            plain=part.plain + sign,
            marked=part.marked + sign,
            is_empty=part.is_empty or least == 0,
            is_atom=False,
            literal="",
            required=(part.required or part.literal) if least else "",
        )

    def counts(self, start: int) -> tuple[int, int]:
        end = self.text.find("}", self.place)
        least, comma, most = self.text[self.place : end].partition(",") if end > 0 else ("", "", "")
        if not _is_number(least) or (most and not _is_number(most)):
            raise self.refuse("a { needs numbers, as in {2,5}; write \\\\{ for the character", start)
        self.place = end + 1
        high = int(least) if not comma else int(most) if most else -1
        if max(int(least), high) > 1000:
            raise self.refuse("more than 1,000 repetitions are not supported", start)
        if 0 <= high < int(least):
            raise self.refuse("the repetition has a smaller upper than lower number", start)
        return int(least), high

    def atom(self) -> _Part:
        start, character = self.place, self.take()
        if character == "(":
            return self.group(start)
        if character == "[":
            return self.set_of(self.set_class())
        if character == ".":
            ends = () if self.flags.s else cp.of("\n") if self.flags.d else cp.LINE_ENDS
            return self.set_of(cp.complement(ends))
        if character == "^":
            if self.flags.m:
                raise self.refuse("^ with the flag m is not supported", start)
            return _Part(r"\A", r"\A", looks=True)
        if character == "$":
            return self.dollar(start)
        if character in "*+?{":
            raise self.refuse(f"{character} has nothing to repeat", start)
        if character == "\\":
            return self.escape(start)
        return self.character(character)

    def dollar(self, start: int) -> _Part:
        if self.flags.m:
            raise self.refuse("$ with the flag m is not supported", start)
        if self.flags.d:
            raise self.refuse("$ with the flag d is not supported", start)
        return _Part(r"\z", rf"(?:\z|{_char(cp.MOST)})", dollars=1)

    def group(self, start: int) -> _Part:
        before = self.flags
        opening = "("
        if self.peek() == "?":
            for sign, name in _REFUSED.items():
                if self.text.startswith(sign, start):
                    raise self.refuse(f"{name} is not supported", start)
            self.take()
            if self.peek() == "<":
                self.named()
            else:
                opening = "(?:"
                if self.read_flags():
                    return _Part("", "")
        else:
            self.n_groups += 1
        inner = self.alternatives()
        if self.peek() != ")":
            raise self.refuse("a ( has no )", start)
        self.take()
        self.flags = before
        return replace(inner, plain=f"{opening}{inner.plain})", marked=f"{opening}{inner.marked})", is_atom=True)

    def named(self) -> None:
        end = self.text.find(">", self.place)
        name = self.text[self.place + 1 : end] if end > 0 else ""
        if not (name.isascii() and name.isalnum() and name[0].isalpha()):
            raise self.refuse("the name of a group has ASCII letters and digits")
        if name in self.names:
            raise self.refuse(f"two groups are named {name}")
        self.n_groups += 1
        self.names.add(name)
        self.place = end + 1

    def read_flags(self) -> bool:
        """Flags after `(?`. True if they hold from here to the end of the surrounding group."""
        flags, on = self.flags, True
        while True:
            letter = self.take()
            if letter in ":)":
                self.flags = flags
                return letter == ")"
            if letter == "-":
                on = False
            elif letter in "idmsx":
                flags = replace(flags, **{letter: on})
            elif letter in "uU":
                raise self.refuse(f"the flag {letter} is not supported", self.place - 1)
            else:
                raise self.refuse(f"unknown flag or group (?{letter}", self.place - 1)

    # -- characters

    def character(self, character: str) -> _Part:
        return self.set_of(self.cased(cp.of(character)))

    def cased(self, points: CodePoints) -> CodePoints:
        return cp.both_cases(points) if self.flags.i else points

    def set_of(self, points: CodePoints) -> _Part:
        """A set of characters. In the marked form, the mark may come before a line end."""
        literal = chr(points[0][0]) if points and points[0][0] == points[-1][1] else ""
        held = cp.intersection(points, _PAIR)
        self.tells_mark |= held not in ((), _PAIR)
        unmarked = cp.intersection(points, cp.complement(_MARKED))
        marked, ends = _class(unmarked), cp.intersection(unmarked, cp.LINE_ENDS)
        if ends:
            others = cp.intersection(unmarked, cp.complement(cp.LINE_ENDS))
            marked = f"(?:{_char(cp.MOST)}?{_class(ends)}{'|' + _class(others) if others else ''})"
        return _Part(_class(points), marked, is_empty=False, is_atom=True, literal=literal)

    def escape(self, start: int) -> _Part:
        letter = self.take()
        if letter in "123456789" or letter == "k":
            raise self.refuse("back references are not supported", start)
        if letter == "A":
            return _Part(r"\A", r"\A", looks=True)
        if letter == "z":
            return _Part(r"\z", r"\z")
        if letter == "Z":
            return self.dollar(start)
        if letter == "b":
            if self.peek() == "{":
                raise self.refuse("\\b{g} is not supported", start)
            self.has_boundary = True
            return _Part("\\b", "\\b", looks=True)
        if letter == "R":
            ends = self.set_of(cp.VERTICAL)
            pair = f"{self.set_of(cp.of(chr(13))).marked}{_char(10)}"
            return _Part(rf"(?:\r\n|{ends.plain})", f"(?:{pair}|{ends.marked})", is_empty=False, is_atom=True)
        if letter == "Q":
            return self.quoted()
        if letter in "BGXN":
            raise self.refuse(f"\\{letter} is not supported", start)
        points = self.escaped_class(letter, start)
        return self.set_of(points) if points is not None else self.character(self.escaped(letter, start))

    def quoted(self) -> _Part:
        end = self.text.find("\\E", self.place)
        inside = self.text[self.place :] if end < 0 else self.text[self.place : end]
        self.place = len(self.text) if end < 0 else end + 2
        if not inside:
            return _Part("", "")
        parts = [self.character(character) for character in inside]
        last = self.quantified(parts[-1], self.place)  # a quantifier is about the last character
        parts[-1] = last
        plain, marked = "".join(part.plain for part in parts), "".join(part.marked for part in parts)
        required = inside[:-1] if not self.flags.i else ""  # a quantifier may remove the last character
        return _Part(plain, marked, is_empty=all(part.is_empty for part in parts), required=required)

    def escaped_class(self, letter: str, start: int) -> CodePoints | None:
        if letter in "pP":
            points = self.property(start)
            return cp.complement(points) if letter == "P" else points
        if letter.lower() in _CLASSES:
            points = _CLASSES[letter.lower()]
            return cp.complement(points) if letter.isupper() else points
        return None

    def property(self, start: int) -> CodePoints:
        name = self.take()
        if name == "{":
            end = self.text.find("}", self.place)
            if end < 0:
                raise self.refuse("\\p{ has no }", start)
            name, self.place = self.text[self.place : end], end + 1
        if self.flags.i:
            raise self.refuse("\\p with the flag i is not supported", start)
        if name in cp.POSIX:
            return cp.POSIX[name]
        plain = name.removeprefix("Is")
        if plain in cp.CATEGORIES:
            return cp.category(plain)
        known = f"{', '.join(cp.POSIX)} and general categories such as L, Lu or Nd"
        raise self.refuse(f"\\p{{{name}}} is not supported; known are {known}", start)

    def escaped(self, letter: str, start: int) -> str:
        """The single character of an escape."""
        if letter in _SIMPLE:
            return _SIMPLE[letter]
        if letter == "0":
            return chr(self.octal(start))
        if letter == "c":
            return chr(ord(self.take()) ^ 64)
        if letter in "xu":
            return self.hexadecimal(letter, start)
        if letter.isascii() and letter.isalpha():
            raise self.refuse(f"\\{letter} is not an escape", start)
        return letter

    def octal(self, start: int) -> int:
        digits = ""
        while len(digits) < 3 and self.peek() and self.peek() in "01234567" and int(digits + self.peek(), 8) < 256:
            digits += self.take()
        if not digits:
            raise self.refuse("\\0 needs octal digits", start)
        return int(digits, 8)

    def hexadecimal(self, letter: str, start: int) -> str:
        if letter == "x" and self.peek() == "{":
            end = self.text.find("}", self.place)
            digits, self.place = self.text[self.place + 1 : end], end + 1
            if end < 0:
                digits = ""
        else:
            width = 2 if letter == "x" else 4
            digits, self.place = self.peek(width), self.place + width
            if len(digits) < width:
                digits = ""
        code = int(digits, 16) if digits and all(each in "0123456789abcdefABCDEF" for each in digits) else -1
        if 0xD800 <= code < 0xDC00 and self.peek(2) == "\\u":
            self.place += 2
            low = ord(self.hexadecimal("u", start)) if self.peek(4)[:1] in "dD" else 0
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) if 0xDC00 <= low < 0xE000 else -1
        elif 0xDC00 <= code < 0xE000 and self.text[start + 1] == "u" and start != self.place - 6:
            return chr(code)  # the second half of a pair
        if not 0 <= code <= cp.MOST or 0xD800 <= code < 0xE000:
            raise self.refuse("an escape has a code that is not a character", start)
        return chr(code)

    # -- classes

    def set_class(self) -> CodePoints:
        """After `[`."""
        start = self.place - 1
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.refuse("it nests too deeply")
        negated = self.peek() == "^"
        if negated:
            self.take()
        points, is_first, has_nested = self.class_items(start)
        while self.peek(2) == "&&":
            if is_first:
                raise self.refuse("&& has nothing before it")
            self.place += 2
            right, is_empty, _ = self.class_items(start)
            if is_empty:
                raise self.refuse("&& has nothing after it")
            points, has_nested = cp.intersection(points, right), True
        self.take()  # the ]
        self.depth -= 1
        if negated and has_nested:
            raise self.refuse("a class or && inside a negated class is not supported", start)
        return cp.complement(points) if negated else points

    def class_items(self, start: int) -> tuple[CodePoints, bool, bool]:
        """The union of items up to `]` or `&&`; whether there is none, and whether one is a class in brackets."""
        parts: list[CodePoints] = []
        has_nested = False
        while True:
            while self.flags.x and self.peek() and self.peek() in " \t\n\x0b\f\r#":
                raise self.refuse("a space or # in a class with the flag x is not supported")
            character = self.peek()
            if not character:
                raise self.refuse("a [ has no ]", start)
            if (character == "]" and parts) or self.peek(2) == "&&":
                return cp.union(*parts), not parts, has_nested
            if character == "^" and self.text[self.place - 2 : self.place] == "&&":
                raise self.refuse("^ after && is not supported; use brackets")
            if character == "[":
                self.take()
                parts.append(self.set_class())
                has_nested = True
                continue
            parts.append(self.class_item())

    def class_item(self) -> CodePoints:
        start = self.place
        low = self.class_character()
        if not isinstance(low, str):
            return low
        if self.peek() != "-" or self.peek(2) in ("-]", "-"):
            return self.cased(cp.of(low))
        if self.peek(2) == "-[" or self.peek(3) == "-&&":
            raise self.refuse("a - before a class is not supported; escape it")
        self.take()
        high = self.class_character()
        if not isinstance(high, str) or ord(high) < ord(low):
            raise self.refuse("a range in a class needs two characters in order", start)
        return self.cased(((ord(low), ord(high)),))

    def class_character(self) -> str | CodePoints:
        start, character = self.place, self.take()
        if character != "\\":
            return character
        letter = self.take()
        if letter in "123456789bBAzZGRXkNQE":
            raise self.refuse(f"\\{letter} in a class is not supported", start)
        points = self.escaped_class(letter, start)
        return points if points is not None else self.escaped(letter, start)


def translate(pattern: str) -> Translated:
    """The pattern for RE2. Raises BadRegexError.

    >>> translate("a|[b-d]+").plain
    '[a]|[b-d]+'
    """
    if len(pattern) > MAX_LENGTH:
        raise BadRegexError(f"it has {len(pattern):,} characters; at most {MAX_LENGTH:,}", 0)
    reader = _Reader(pattern)
    whole = reader.alternatives()
    if reader.peek() == ")":
        raise reader.refuse("a ) has no (")
    marked = whole.marked if whole.dollars else None
    return Translated(
        whole.plain,
        marked,
        reader.n_groups,
        whole.is_empty,
        reader.has_boundary,
        whole.required,
        reader.tells_mark,
        reader.repeats_empty,
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _char(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else rf"\x{{{code:X}}}"


def _class(points: CodePoints) -> str:
    if not points:
        return r"[^\x00-\x{10FFFF}]"
    ranges = (_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in points)
    return f"[{''.join(ranges)}]"
