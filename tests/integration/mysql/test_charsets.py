"""Character sets and collations: what is known here is what the servers say."""

from __future__ import annotations

import pytest
from tests.mysql_servers import MARIADB, MySqlServer

from tailrace.errors import DefiniteError
from tailrace.source.mysql.values.charsets import charset_of, text_of

SINGLE = (
    *("ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "greek", "hebrew", "hp8", "koi8r"),
    *("koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "tis620"),
)
DOUBLE = ("gbk", "gb2312", "euckr", "cp932")
WIDE = ("ucs2", "utf16", "utf16le", "utf32")


def converted(server: MySqlServer, charset: str, codes: list[bytes]) -> dict[bytes, str]:
    """Each of these that is one character, as the server reads it."""
    found: dict[bytes, str] = {}
    with server.connect() as conn, conn.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        for start in range(0, len(codes), 500):
            part = codes[start : start + 500]
            each = (f"hex(convert(convert(x'{code.hex()}' using {charset}) using utf8mb4))" for code in part)
            cursor.execute(f"select {', '.join(each)}")
            texts = (bytes.fromhex(text or "").decode() for text in cursor.fetchone())
            pairs = zip(part, texts, strict=True)
            found |= {code: text for code, text in pairs if len(text) == 1 and text not in ("?", "\ufffd")}
    return found


def differences(said: dict[bytes, str], charset: str) -> list[tuple[str, str, str]]:
    wrong = []
    for code, text in said.items():
        try:
            ours = text_of(code, charset)
        except DefiniteError:
            ours = "refused"
        if ours != text:
            wrong.append((code.hex(), text, ours))
    return wrong


@pytest.mark.parametrize("charset", SINGLE)
def test_every_character_of_one_byte_is_the_servers(server: MySqlServer, charset: str) -> None:
    said = converted(server, charset, [bytes((code,)) for code in range(256)])
    assert len(said) > 120
    assert differences(said, charset) == []


@pytest.mark.parametrize("charset", DOUBLE)
def test_every_character_of_two_bytes_is_the_servers(mariadb: MySqlServer, charset: str) -> None:
    """MySQL reads a half-width character and ignores what is wrong after it, so it is not asked."""
    said = converted(
        mariadb, charset, [bytes((lead, tail)) for lead in range(0x81, 0xFF) for tail in range(0x40, 0xFF)]
    )
    assert len(said) > 6000
    assert differences(said, charset) == []


@pytest.mark.parametrize("charset", WIDE)
def test_every_wide_character_is_the_servers(server: MySqlServer, charset: str) -> None:
    letters = [chr(code) for code in (*range(1, 0xD800, 37), *range(0xE000, 0x10000, 41), 0x1F600, 0x10FFFF)]
    letters = letters if charset != "ucs2" else letters[:-2]
    codec = {"utf16le": "utf-16-le", "utf32": "utf-32-be"}.get(charset, "utf-16-be")
    said = converted(server, charset, [letter.encode(codec) for letter in letters])
    assert len(said) > 1400
    assert differences(said, charset) == []


def test_every_collation_belongs_to_the_character_set_that_the_server_names(server: MySqlServer) -> None:
    table = "collation_character_set_applicability" if server.make is MARIADB else "collations"
    rows = server.execute(f"select id, character_set_name from information_schema.{table} where id is not null")
    names = {collation: name.replace("utf8mb3", "utf8").replace("utf8", "utf8mb3", 1) for collation, name in rows}
    names = {collation: name.replace("utf8mb3mb4", "utf8mb4") for collation, name in names.items()}
    ours = {collation: found and found.name for collation in names if (found := charset_of(collation)) or True}
    assert [(each, ours[each], names[each]) for each in names if ours[each] != names[each]] == []
    sizes = dict(server.execute("select character_set_name, maxlen from information_schema.character_sets"))
    sizes["utf8mb3"] = 3
    assert [each for each in names if charset_of(each).bytes_max != sizes[names[each]]] == []
