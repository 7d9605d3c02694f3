"""Arrays of texts as Java serialises them, read back."""

from __future__ import annotations

NULL = "aced000570"
HEAD = bytes.fromhex("aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870")


def texts_of(value: str) -> list[str] | None:
    """What the hex of an `Object[]` of texts holds; None for Java's null."""
    if value == NULL:
        return None
    content = bytes.fromhex(value)
    assert content.startswith(HEAD)
    count, rest, texts = int.from_bytes(content[len(HEAD) : len(HEAD) + 4], "big"), content[len(HEAD) + 4 :], []
    for _ in range(count):
        begin = {0x74: 3, 0x7C: 9}[rest[0]]
        end = begin + int.from_bytes(rest[1:begin], "big")
        texts.append(_from_modified_utf8(rest[begin:end]))
        rest = rest[end:]
    assert not rest
    return texts


def _from_modified_utf8(content: bytes) -> str:
    halves = content.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return halves.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
