"""A value with a name that looks secret is in no part of the database, however it is passed."""

import sys

import apsw

from recording import Record

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# Each secret has "hunter2" in it.
WAYS = """
    from collections import OrderedDict, defaultdict
    from enum import StrEnum
    from pytracer import log, notrace
    secret = "hunter2-".__add__ # a new string each time

    def named(password, /, API_KEY, *, user_Token=None, x_authorization=b""):
        yield (lambda: len(password))()

    def keywords(**options):
        options["token"]

    def one(value):
        pass

    class Name(str):
        def __hash__(self):
            assert not watched
            return 5
        def __eq__(self, other):
            assert not watched
            return str.__eq__(self, other)

    class Field(StrEnum):
        PASSWORD = "password"

    class Liar(dict):
        def items(self):
            raise ValueError
        __iter__ = __len__ = __getitem__ = keys = items

    watched = False
    list(named(secret("1"), secret("2"), user_Token=secret("3"), x_authorization=secret("4").encode()))
    keywords(token=secret("5"), **{"client secret": secret("6"), "db-passwd": secret("7")})
    one({"Proxy-Authorization": secret("8"), "X-Api-Key": secret("9"), "Set-Cookie": secret("10")})
    one({"HTTP_COOKIE": secret("11"), "aws_secret_access_key": secret("12"), "privateKey": secret("13")})
    one({b"authorization": secret("14"), Field.PASSWORD: secret("15")})
    one({"nul\\0password": secret("16"), "\\ud800token": secret("17"), "é-passphrase": secret("18")})
    one(OrderedDict(password=secret("19")))
    one(defaultdict(list, password=[secret("20")]))
    one(Liar(password=secret("21")))
    strange = {Name("password"): secret("22")}
    watched = True
    one(strange)
    one([{"deep": {"token": secret("23")}}])
    log("signed in", password=secret("24"), **{"access-key": secret("25")})
    one({("a", "b"): 1, 5: 2, None: 3, "cookiecutter": 4})
"""


def test_secrets_are_nowhere(record: Record) -> None:
    recording = record(WAYS, "--no-stdlib")
    assert "hunter2" not in str(recording.of("call", "resume", "log"))
    shown = [text for event in recording.of("call", "log") for text in event.values.values()]
    assert "".join(shown).count("<redacted>") == 25, shown
    assert shown[-1] == "{('a', 'b'): 1, 5: 2, None: 3, 'cookiecutter': 4}"
    connection = apsw.Connection(str(recording.database))
    for (data,) in connection.execute("SELECT data FROM segment"):
        assert b"hunter2" not in zstd.decompress(data)
