"""Test cases for every rule of the receiver: requests that keep it or break it.

A case is a good request with changes. ``code`` names the rule that must refuse it; None means that it is accepted. The
order of the checks is part of the contract: a request that breaks two rules gets the code of the first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from vectors.forge import (
    ORDER,
    Json,
    encode,
    make_hmac_token,
    make_key,
    make_token,
    sign_der,
    sign_raw,
    to_json,
    to_jwk,
)

ISSUER = "https://agents.example.com"
AUDIENCE = "https://app.example.net/webhook"
NOW = 1_767_225_600_000
TASK = "7f9c2d1e-task"
TOKEN = "client-token-5d41402abc4b2a76"  # noqa: S105 - made up
CREDENTIALS = "Basic cmVjZWl2ZXI6c2VjcmV0"

CURRENT = make_key("current")
NEXT = make_key("next")
STRANGER = make_key("stranger")
P384 = make_key("p384", ec.SECP384R1())
KID = to_jwk(CURRENT)["kid"]
RSA_JWK = {"kty": "RSA", "kid": "rsa-1", "use": "sig", "alg": "RS256", "n": encode(b"\xc5" * 256), "e": "AQAB"}
KEY_SET = {"keys": [to_jwk(CURRENT), to_jwk(NEXT), to_jwk(P384), RSA_JWK]}

MAX_TOKEN = 8192
SHOWN = 60
"""The longest value that a case's name spells out."""

Headers = list[tuple[str, str]]
Expected = dict[str, str | int]

STATUS = {"state": "TASK_STATE_WORKING", "timestamp": "2025-12-31T23:59:58.123Z"}
STATUS_UPDATE = {"statusUpdate": {"taskId": TASK, "contextId": "ctx-1", "status": STATUS}}
BODY = to_json(STATUS_UPDATE)
CHALLENGE = {"type": "a2a.webhook.challenge", "challenge": "b2Nlbi1zYWlsYm9hdA"}
ANOTHER_HASH = sha256(b"another body").hexdigest()


@dataclass(frozen=True)
class Case:
    """A request, the expectations at its time, and the verdict."""

    name: str
    code: str | None
    headers: Headers
    body: bytes
    now: int = NOW
    expectations: list[Expected] = field(
        default_factory=lambda: [{"taskId": TASK, "token": TOKEN, "expires": NOW + 3_600_000}]
    )
    challenge: str | None = None


def good_claims(body: bytes = BODY, **changes: Json) -> dict[str, Json]:
    """The claims of a good notification, with changes; the value ... removes a claim."""
    seconds = NOW // 1000
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "iat": seconds,
        "exp": seconds + 300,
        "jti": "01JGX5T3P8-attempt-1",
        "sub": TASK,
        "taskId": TASK,
        "configId": "config-1",
        "notificationId": "7f9c2d1e-task.config-1.3",
        "eventNumber": 3,
        "request_body_sha256": sha256(body).hexdigest(),
    }
    return _changed(claims, changes)


def good_header(**changes: Json) -> dict[str, Json]:
    """The header of a good token, with changes; the value ... removes a member."""
    return _changed({"alg": "ES256", "typ": "a2a-notification+jwt", "kid": KID}, changes)


def good_token(body: bytes = BODY, **claims: Json) -> str:
    """A good token, with changes."""
    return make_token(good_header(), good_claims(body, **claims), CURRENT)


def good_headers(token: str, **changes: Json) -> Headers:
    """The headers of a good request, with changes; underscores stand for hyphens; the value ... removes a header."""
    headers = {
        "Content-Type": "application/a2a+json",
        "A2A-Version": "1.0",
        "Authorization": f"Bearer {token}",
        "X-A2A-Notification-Token": TOKEN,
    }
    return list(_changed(headers, {name.replace("_", "-"): value for name, value in changes.items()}).items())


def _changed(members: dict[str, Json], changes: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in (members | changes).items() if value is not ...}


def all_cases() -> list[Case]:
    """Every case; names are unique."""
    groups = (
        _accepted_cases,
        _transport_cases,
        _shape_cases,
        _header_cases,
        _key_cases,
        _signature_cases,
        _claim_cases,
        _issuer_cases,
        _audience_cases,
        _time_cases,
        _hash_cases,
        _expectation_cases,
        _body_cases,
        _challenge_cases,
    )
    return [case for group in groups for case in group()]


def _plain(name: str, code: str | None, token: str, **headers: Json) -> Case:
    return Case(name, code, good_headers(token, **headers), BODY)


def _with_body(name: str, code: str | None, body: bytes, **headers: Json) -> Case:
    """A request whose signature fits its body, so that only the body can be wrong."""
    return Case(name, code, good_headers(good_token(body), **headers), body)


def _accepted_cases() -> Iterator[Case]:
    token = good_token()
    yield _plain("a status update", None, token)
    yield _plain("an authorization scheme in lower case", None, token, Authorization=f"bearer {token}")
    yield _plain("a content type with a charset", None, token, Content_Type='application/a2a+json; charset="UTF-8"')
    yield _plain("plain JSON as content type", None, token, Content_Type="application/json")
    yield _plain("an identity content encoding", None, token, Content_Encoding="identity")
    lower = [(name.lower(), value) for name, value in good_headers(token)]
    yield Case("header names in lower case", None, lower, BODY)
    yield Case("a header twice that decides nothing", None, [*lower, ("via", "1.1 a"), ("via", "1.1 b")], BODY)
    own_header = good_headers(token, X_A2A_Notification_JWT=token, Authorization=...)
    yield Case("the token in its own header", None, own_header, BODY)
    yield from _accepted_credentials(token)
    yield from _accepted_claims()
    yield from _accepted_bodies()


def _accepted_credentials(token: str) -> Iterator[Case]:
    expected: Expected = {"taskId": TASK, "token": TOKEN, "expires": NOW + 1}
    for name, credentials in (
        ("Basic", CREDENTIALS),
        ("Bearer", "Bearer opaque"),
        ("JWT", f"Bearer {_foreign_token()}"),
    ):
        headers = good_headers(token, X_A2A_Notification_JWT=token, Authorization=credentials)
        with_credentials = [expected | {"authorization": credentials}]
        yield Case(f"the client's own {name} credentials", None, headers, BODY, expectations=with_credentials)
        yield Case(f"{name} credentials that nobody asked for", None, headers, BODY)
    headers = good_headers(token)
    anything: list[Expected] = [{"token": TOKEN, "expires": NOW + 1}]
    yield Case("a token that is not bound to a task yet", None, headers, BODY, expectations=anything)
    by_task: list[Expected] = [{"taskId": TASK, "expires": NOW + 1}]
    without = good_headers(token, X_A2A_Notification_Token=...)
    yield Case("a task that is expected without a token", None, without, BODY, expectations=by_task)
    yield Case("a token where none was expected", None, headers, BODY, expectations=by_task)
    several: list[Expected] = [{"taskId": "other", "token": "other", "expires": NOW + 1}, *by_task]
    yield Case("one of several expectations", None, without, BODY, expectations=several)


def _foreign_token() -> str:
    """A client's own JWT, which is not of our types."""
    return make_token({"alg": "ES256", "typ": "JWT", "kid": "theirs"}, {"sub": "receiver"}, STRANGER)


def _accepted_claims() -> Iterator[Case]:
    seconds = NOW // 1000
    changes: dict[str, dict[str, Json]] = {
        "issued 60 seconds ahead of our clock": {"iat": seconds + 60, "exp": seconds + 120},
        "expired for less than 60 seconds": {"iat": seconds - 300, "exp": seconds - 59},
        "a lifetime of exactly five minutes": {"iat": seconds, "exp": seconds + 300},
        "a lifetime of one second": {"iat": seconds, "exp": seconds + 1},
        "a not-before that is the time of issue": {"nbf": seconds},
        "a configuration that the client gave a name": {"configId": "mein Gerät 手机"},
        "a claim that we do not know": {"region": "eu-central-1"},
        "the first event": {"eventNumber": 1},
        "the greatest event number": {"eventNumber": 2**53 - 1},
    }
    for name, change in changes.items():
        yield _plain(name, None, good_token(**change))
    key_id = to_jwk(NEXT)["kid"]
    yield _plain("signed by the next key", None, make_token(good_header(kid=key_id), good_claims(), NEXT))
    # ECDSA has two valid signatures for one message. Both are accepted; the jti makes the second a duplicate.
    yield _plain("the other signature of the same message", None, _resigned(lambda r, s: (r, ORDER - s)))


def _accepted_bodies() -> Iterator[Case]:
    part = {"text": "Hello 世界 ⛵"}
    artifact = {"artifactId": "a-1", "name": "document.md", "parts": [part]}
    update = {"taskId": TASK, "contextId": "ctx-1", "artifact": artifact, "append": True, "lastChunk": False}
    task = {"id": TASK, "contextId": "ctx-1", "status": STATUS, "artifacts": [artifact]}
    message = {"messageId": "m-1", "role": "ROLE_AGENT", "taskId": TASK, "parts": [part]}
    bodies: dict[str, Json] = {
        "a task snapshot": {"task": task},
        "an artifact update": {"artifactUpdate": update},
        "a message": {"message": message},
        "members that we do not know": {**STATUS_UPDATE, "generation": "7", "another": {"task": 1}},
        "data that is null": {"artifactUpdate": update | {"artifact": artifact | {"parts": [{"data": None}]}}},
        "text that is empty": {"artifactUpdate": update | {"artifact": artifact | {"parts": [{"text": ""}]}}},
    }
    for name, body in bodies.items():
        yield _with_body(name, None, to_json(body))
    old: dict[str, Json] = {"kind": "task", "id": TASK, "contextId": "ctx-1", "status": {"state": "input-required"}}
    file = {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "hi.txt"}}
    old |= {"artifacts": [{"artifactId": "a-1", "parts": [{"kind": "text", "text": "hi"}, file]}]}
    json_type = "application/json"
    yield _with_body("a task of A2A 0.3", None, to_json(old), A2A_Version="0.3", Content_Type=json_type)
    yield _with_body("a task of A2A 0.3 without version", None, to_json(old), A2A_Version=..., Content_Type=json_type)
    yield _with_body("white space around the body", None, b"\r\n " + BODY + b"\n")
    deep = BODY[:-1] + b',"x":' + b"[" * 63 + b"]" * 63 + b"}"
    yield _with_body("a body nested 64 deep", None, deep)
    yield _with_body("a number of 300 digits", None, BODY[:-1] + b',"x":' + b"9" * 300 + b"}")
    yield _plain("a token of 8192 letters", None, _token_of(MAX_TOKEN))


def _transport_cases() -> Iterator[Case]:
    token = good_token()
    authorizations: dict[str, Json] = {
        "no Authorization": ...,
        "an empty Authorization": "",
        "Basic credentials only": CREDENTIALS,
        "Bearer without a token": "Bearer",
        "Bearer with a space and no token": "Bearer ",
        "two spaces before the token": f"Bearer  {token}",
        "a tab before the token": f"Bearer\t{token}",
        "a space before the scheme": f" Bearer {token}",
        "a space after the token": f"Bearer {token} ",
        "a token without a scheme": token,
        "another scheme": f"JWT {token}",
        "two tokens in one header": f"Bearer {token}, Bearer {token}",
        "two tokens after one scheme": f"Bearer {token} {token}",
    }
    for name, value in authorizations.items():
        yield _plain(name, "no-signature", token, Authorization=value)
    yield from _duplicate_cases(token)
    yield from _ambiguous_cases(token)
    media: dict[str, Json] = {
        "no content type": ...,
        "an empty content type": "",
        "plain text": "text/plain",
        "a form": "application/x-www-form-urlencoded",
        "another JSON type": "application/ld+json",
        "another charset": "application/json; charset=utf-16",
        "a parameter that we do not know": "application/json; profile=x",
        "two content types in one": "application/json, text/html",
    }
    for name, value in media.items():
        yield _plain(name, "unsupported-media", token, Content_Type=value)
    for encoding in ("gzip", "br", "identity, gzip"):
        yield _plain(f"{encoding} as content encoding", "unsupported-media", token, Content_Encoding=encoding)


def _duplicate_cases(token: str) -> Iterator[Case]:
    headers = good_headers(token)
    for name, value in (*headers, ("Content-Encoding", "identity"), ("X-A2A-Notification-JWT", token)):
        twice = [*(header for header in headers if header[0] != name), (name, value), (name.lower(), value)]
        yield Case(f"{name} twice", "duplicate-header", twice, BODY)
    for name, value in (("first", token), ("second", make_token(good_header(), good_claims(jti="j-2"), STRANGER))):
        both = [*headers, ("AUTHORIZATION", f"Bearer {value}")]
        yield Case(f"another Authorization beside it, the {name} one good", "duplicate-header", both, BODY)


def _ambiguous_cases(token: str) -> Iterator[Case]:
    another = good_token(jti="another")
    for name, own in (
        ("the same token in both headers", token),
        ("two good tokens in two headers", another),
        ("a good token beside an empty one", ""),
        ("a good token beside a broken one", "broken"),
    ):
        yield _plain(name, "ambiguous-signature", token, X_A2A_Notification_JWT=own)
    scheme = f"Bearer {token}"
    yield _plain(
        "a scheme in our own header", "malformed-token", token, X_A2A_Notification_JWT=scheme, Authorization=...
    )
    yield _plain("an empty header of our own", "malformed-token", token, X_A2A_Notification_JWT="", Authorization=...)


def _shape_cases() -> Iterator[Case]:
    header, payload, signature = good_token().split(".")
    tokens = {
        "one segment": header,
        "two segments": f"{header}.{payload}",
        "four segments": f"{header}.{payload}.{signature}.{signature}",
        "five segments, as a JWE has": f"{header}.{payload}.{signature}.{payload}.{signature}",
        "an empty signature": f"{header}.{payload}.",
        "an empty payload": f"{header}..{signature}",
        "an empty header": f".{payload}.{signature}",
        "dots only": "..",
        "a padded signature": f"{header}.{payload}.{signature}==",
        "a padded header": f"{header}{'=' * (-len(header) % 4)}.{payload}.{signature}=",
        "standard base64 in the signature": f"{header}.{payload}.+/{signature[2:]}",
        "a percent-encoded dot": f"{header}%2E{payload}.{signature}",
        "a signature with other unused bits": f"{header}.{payload}.{_next_letter(signature)}",
        "a segment of impossible length": f"{header}.{payload}.{signature}AAA",
        "a control character": f"{header}.{payload}.{signature}\x00",
        "a letter that only looks like one": f"{header}.{payload}.\u0430{signature[1:]}",
        "a token a little longer than 8192 letters": _token_of(MAX_TOKEN + 1),
        "a very long token": good_token(padding="x" * MAX_TOKEN),
        "JSON serialization": '{"protected":"'
        + header
        + '","payload":"'
        + payload
        + '","signature":"'
        + signature
        + '"}',
        "a word": "undefined",
    }
    for name, token in tokens.items():
        yield _plain(name, "malformed-token", token)


def _token_of(length: int) -> str:
    """The shortest good token of at least that many characters; base64url cannot have every length."""
    tokens = (good_token(padding="x" * size) for size in range(length // 2, length))
    return next(token for token in tokens if len(token) >= length)


def _next_letter(segment: str) -> str:
    """Another text that decodes to the same 64 bytes: only two bits of the last of 86 characters count."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return segment[:-1] + alphabet[alphabet.index(segment[-1]) + 1]


def _header_cases() -> Iterator[Case]:
    claims = good_claims()
    raw = to_json(good_header())
    broken = {
        "a header that is an array": b'["ES256"]',
        "a header that is not JSON": b"alg=ES256",
        "a header with a byte order mark": b"\xef\xbb\xbf" + raw,
        "a header that is not UTF-8": raw[:-2] + b'\xff"}',
        "a header that names alg twice": b'{"alg":"none",' + raw[1:],
        "a header with NaN": raw[:-1] + b',"x":NaN}',
        "a header nested 1000 deep": b'{"alg":' + b"[" * 1000 + b"]" * 1000 + b"}",
        "a header with something behind it": raw + b"{}",
    }
    for name, header in broken.items():
        yield _plain(name, "malformed-token", make_token(header, claims, CURRENT))
    yield from _algorithm_cases(claims)
    types: tuple[Json, ...] = (..., None, "", "JWT", "at+jwt", "a2a-notification", "A2A-NOTIFICATION+JWT")
    types += ("application/a2a-notification+jwt", "a2a-notification+jwt ", ["a2a-notification+jwt"], 1)
    for typ in types:
        yield _plain(f"the type {_say(typ)}", "wrong-type", make_token(good_header(typ=typ), claims, CURRENT))
    yield from _forbidden_cases(claims)


def _say(value: Json) -> str:
    text = "left out" if value is ... else repr(value)
    return text if len(text) < SHOWN else f"of {len(value)} letters"


def _algorithm_cases(claims: dict[str, Json]) -> Iterator[Case]:
    algorithms: tuple[Json, ...] = (..., None, "", "none", "None", "NONE", "nOnE", "HS256", "RS256", "PS256", "ES384")
    algorithms += ("ES256K", "EdDSA", "es256", "ES256 ", "ES256\x00", ["ES256"], {"ES256": 1}, 256, True)
    for alg in algorithms:
        token = make_token(good_header(alg=alg), claims, CURRENT)
        yield _plain(f"the algorithm {_say(alg)}", "wrong-algorithm", token)
    public = CURRENT.public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    secrets = {"PEM": pem, "JWK": to_json(to_jwk(CURRENT)), "key id": KID.encode(), "empty secret": b"\x00"}
    for name, secret in secrets.items():
        token = make_hmac_token(good_header(alg="HS256"), claims, secret)
        yield _plain(f"an HMAC with the public key's {name}", "wrong-algorithm", token)
    token = make_token(good_header(alg="ES384", kid=to_jwk(P384)["kid"]), claims, P384)
    yield _plain("a good ES384 signature by a published P-384 key", "wrong-algorithm", token)


def _forbidden_cases(claims: dict[str, Json]) -> Iterator[Case]:
    jwk = to_jwk(STRANGER)
    extras: dict[str, Json] = {
        "jwk": jwk,
        "jku": "https://evil.example/jwks.json",
        "x5u": "https://evil.example/chain.pem",
        "x5c": ["MIIB"],
        "x5t": "c2hh",
        "x5t#S256": "c2hh",
        "crit": ["exp"],
        "b64": False,
        "zip": "DEF",
        "cty": "JWT",
        "enc": "A256GCM",
        "epk": jwk,
        "iss": ISSUER,
        "__proto__": {"alg": "ES256"},
        "unknown": 1,
    }
    for name, value in extras.items():
        header = good_header(**{name: value})
        yield _plain(f"the header member {name}", "forbidden-header", make_token(header, claims, CURRENT))
    own = good_header(jwk=jwk, kid=jwk["kid"])
    yield _plain("a key that the token brings along", "forbidden-header", make_token(own, claims, STRANGER))
    nested = make_token(good_header(cty="JWT"), good_token().encode(), CURRENT)
    yield _plain("a nested token", "forbidden-header", nested)


def _key_cases() -> Iterator[Case]:
    claims = good_claims()
    malformed: tuple[Json, ...] = (..., None, "", 1, True, [KID], {"kid": KID}, "k" * 129, f"{KID}\x00", f" {KID}")
    malformed += (
        "../../../../dev/null",
        "/dev/null",
        "' OR '1'='1",
        "https://evil.example/key",
        "a|b",
        "k\r\nX: y",
        "ключ",
    )
    for kid in malformed:
        yield _plain(f"the key id {_say(kid)}", "malformed-token", make_token(good_header(kid=kid), claims, CURRENT))
    unknown = (
        "unknown",
        "__proto__",
        "constructor",
        "toString",
        "..",
        ".",
        KID.lower(),
        KID[:-1],
        to_jwk(STRANGER)["kid"],
    )
    for kid in unknown:
        yield _plain(f"the unknown key id {kid}", "unknown-key", make_token(good_header(kid=kid), claims, CURRENT))
    for name, kid in (("P-384", to_jwk(P384)["kid"]), ("RSA", "rsa-1")):
        token = make_token(good_header(kid=kid), claims, CURRENT)
        yield _plain(f"the key id of a published {name} key", "unknown-key", token)
    for name, key in (("an unpublished", STRANGER), ("another published", NEXT)):
        token = make_token(good_header(), claims, key)
        yield _plain(f"signed by {name} key under a known id", "wrong-signature", token)


def _signed_as(signature: bytes) -> str:
    signing_input = good_token().rpartition(".")[0]
    return f"{signing_input}.{encode(signature)}"


def _resigned(change: "Json") -> str:
    """A good token with r and s changed by ``change``."""
    signature = sign_raw(good_token().rpartition(".")[0].encode(), CURRENT)
    r, s = change(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
    return _signed_as(r.to_bytes(32) + s.to_bytes(32))


def _signature_cases() -> Iterator[Case]:
    signing_input = good_token().rpartition(".")[0].encode()
    good = sign_raw(signing_input, CURRENT)
    flipped = bytes([good[0] ^ 1]) + good[1:]
    signatures = {
        "an ASN.1 signature": sign_der(signing_input, CURRENT),
        "a signature cut by one byte": good[:-1],
        "a signature with one byte more": good + b"\x00",
        "a signature with a zero before it": b"\x00" + good,
        "numbers of 33 bytes": b"\x00" + good[:32] + b"\x00" + good[32:],
        "a signature twice": good + good,
        "zeros": bytes(64),
        "ones": b"\xff" * 64,
        "one byte": b"\x01",
        "one bit flipped": flipped,
        "a signature of the header only": sign_raw(signing_input.partition(b".")[0], CURRENT),
        "a signature of the claims only": sign_raw(signing_input.partition(b".")[2], CURRENT),
        "a signature of another token": sign_raw(good_token(jti="other").rpartition(".")[0].encode(), CURRENT),
        "a P-384 signature": sign_raw(signing_input, P384),
    }
    for name, signature in signatures.items():
        yield _plain(name, "wrong-signature", _signed_as(signature))
    numbers: dict[str, Json] = {
        "r is zero": lambda _r, s: (0, s),
        "s is zero": lambda r, _s: (r, 0),
        "r and s are one": lambda _r, _s: (1, 1),
        "r is the group's order": lambda _r, s: (ORDER, s),
        "s is the group's order": lambda r, _s: (r, ORDER),
        "r is mirrored": lambda r, s: (ORDER - r, s),
        "r and s exchanged": lambda r, s: (s, r),
    }
    for name, change in numbers.items():
        yield _plain(name, "wrong-signature", _resigned(change))
    header, payload, signature_text = good_token().split(".")
    altered = encode(to_json(good_claims(eventNumber=4)))
    yield _plain("claims changed after signing", "wrong-signature", f"{header}.{altered}.{signature_text}")
    altered = encode(to_json(good_header(typ="a2a-challenge+jwt")))
    yield _plain("type changed after signing", "wrong-signature", f"{altered}.{payload}.{signature_text}")


def _claim_cases() -> Iterator[Case]:
    code = "malformed-claims"
    removed: Json = ...
    for name in good_claims():
        yield _plain(f"no {name}", code, good_token(**{name: removed}))
    seconds = NOW // 1000
    number: tuple[Json, ...] = (None, True, False, 0, -1, 1.5, float(seconds), str(seconds), [seconds], 2**53, 10**30)
    for name in ("iat", "exp", "eventNumber"):
        for value in number:
            yield _plain(f"{name} is {value!r}", code, good_token(**{name: value}))
    label: tuple[Json, ...] = (None, 7, True, "", ["x"], {"x": "y"}, "x" * 257, "line\nbreak", "nul\x00", "\x7f")
    identifier = (*label, "ünï", "a b")
    for name, values in {
        "jti": identifier,
        "taskId": identifier,
        "notificationId": identifier,
        "configId": label,
    }.items():
        for value in values:
            changes = {name: value} | ({"sub": value} if name == "taskId" else {})
            yield _plain(f"{name} is {_say(value)}", code, good_token(**changes))
    for value in ("another-task", TASK.upper(), f"{TASK} ", 7):
        yield _plain(f"sub is {value!r}", code, good_token(sub=value))
    for name, value in _wrong_hashes().items():
        yield _plain(f"a body hash that is {name}", code, good_token(request_body_sha256=value))
    for value in (seconds + 1, str(seconds), 0, 1.5, True):
        yield _plain(f"nbf is {value!r}", code, good_token(nbf=value))
    yield from _claim_text_cases()


def _wrong_hashes() -> dict[str, Json]:
    right = sha256(BODY)
    return {
        "in upper case": right.hexdigest().upper(),
        "in base64": encode(right.digest()),
        "too short": right.hexdigest()[:-1],
        "too long": right.hexdigest() + "0",
        "prefixed": "sha256:" + right.hexdigest(),
        "empty": "",
        "null": None,
        "a number": int(right.hexdigest(), 16),
        "a list": [right.hexdigest()],
        "not hex": "g" * 64,
        "full of other digits": "٠" * 64,
    }


def _claim_text_cases() -> Iterator[Case]:
    raw = to_json(good_claims())
    texts = {
        "claims that are an array": b"[" + raw + b"]",
        "claims that are a string": b'"' + encode(raw).encode() + b'"',
        "claims that are null": b"null",
        "claims that are not JSON": b"iss=x",
        "claims that are another token": good_token().encode(),
        "claims with aud twice": raw[:-1] + b',"aud":"' + AUDIENCE.encode() + b'"}',
        "claims with iss twice, once escaped": b'{"i\\u0073s":"https://evil.example",' + raw[1:],
        "claims with NaN": raw[:-1] + b',"x":NaN}',
        "claims with Infinity": raw[:-1] + b',"x":-Infinity}',
        "claims with a number out of range": raw[:-1] + b',"x":1e400}',
        "claims with a byte order mark": b"\xef\xbb\xbf" + raw,
        "claims in UTF-16": raw.decode().encode("utf-16"),
        "claims that are not UTF-8": raw[:-2] + b"\xc0\xaf}",
        "claims with a lone surrogate": raw[:-1] + b',"x":"\\ud800"}',
        "claims with a comment": raw + b"//",
        "claims with a comma too much": raw[:-1] + b",}",
        "claims with single quotes": raw.replace(b'"', b"'"),
        "claims with a leading zero": raw.replace(b'"eventNumber":3', b'"eventNumber":03'),
        "claims with a number in hex": raw.replace(b'"eventNumber":3', b'"eventNumber":0x3'),
        "claims with an exponent": raw.replace(b'"eventNumber":3', b'"eventNumber":3e0'),
        "claims with something behind them": raw + b"{}",
        "claims with a control character in a string": raw[:-1] + b',"x":"\n"}',
        "claims nested 1000 deep": raw[:-1] + b',"x":' + b"[" * 1000 + b"]" * 1000 + b"}",
        "claims nested 65 deep": raw[:-1] + b',"x":' + b"[" * 64 + b"]" * 64 + b"}",
    }
    for name, text in texts.items():
        yield _plain(name, "malformed-claims", make_token(good_header(), text, CURRENT))


def _issuer_cases() -> Iterator[Case]:
    issuers = (
        "https://agents.example.com/",
        "https://AGENTS.example.com",
        "https://agents.example.com:443",
        "https://agents.example.com.evil.example",
        "https://agents.example.com/outline",
        "https://agents.example.com#",
        "https://evil@agents.example.com",
        "http://agents.example.com",
        "agents.example.com",
        " https://agents.example.com",
        "https://agents.example.com ",
        "https://аgents.example.com",
        "https://evil.example",
        AUDIENCE,
        "*",
    )
    for issuer in issuers:
        yield _plain(f"the issuer {issuer!r}", "wrong-issuer", good_token(iss=issuer))
    values: tuple[Json, ...] = (None, 7, ["https://agents.example.com"], {}, "", "x" * 2049)
    for value in values:
        yield _plain(f"an issuer {_say(value)}", "malformed-claims", good_token(iss=value))


def _audience_cases() -> Iterator[Case]:
    audiences = (
        "https://app.example.net/webhook/",
        "https://app.example.net/webhook2",
        "https://app.example.net/web",
        "https://app.example.net",
        "https://app.example.net/Webhook",
        "https://APP.example.net/webhook",
        "HTTPS://app.example.net/webhook",
        "https://app.example.net:443/webhook",
        "https://app.example.net/webhook?",
        "https://app.example.net/webhook?user=1",
        "https://app.example.net/webhook#x",
        "https://app.example.net//webhook",
        "https://app.example.net/./webhook",
        "https://app.example.net/%77ebhook",
        "https://app.example.net./webhook",
        "https://me@app.example.net/webhook",
        "http://app.example.net/webhook",
        "app.example.net/webhook",
        "https://app.example.net/webhook ",
        " https://app.example.net/webhook",
        "https://app.example.net/webhook\n",
        "https://another.example.net/webhook",
        ISSUER,
        "*",
    )
    for audience in audiences:
        yield _plain(f"the audience {audience!r}", "wrong-audience", good_token(aud=audience))
    values: tuple[Json, ...] = ([AUDIENCE], [AUDIENCE, "https://evil.example"], [], {AUDIENCE: 1}, None, True, 1, "")
    for value in values:
        yield _plain(f"an audience of {value!r}", "malformed-claims", good_token(aud=value))


def _time_cases() -> Iterator[Case]:
    seconds = NOW // 1000
    times: dict[str, tuple[str, int, int]] = {
        "expired for exactly 60 seconds": ("expired", seconds - 360, seconds - 60),
        "expired for an hour": ("expired", seconds - 3900, seconds - 3600),
        "expired for a year": ("expired", seconds - 31_536_300, seconds - 31_536_000),
        "issued 61 seconds ahead": ("not-yet-valid", seconds + 61, seconds + 120),
        "issued an hour ahead": ("not-yet-valid", seconds + 3600, seconds + 3700),
        "times in milliseconds": ("not-yet-valid", NOW, NOW + 300),
        "a lifetime of 301 seconds": ("lives-too-long", seconds, seconds + 301),
        "a lifetime of an hour": ("lives-too-long", seconds, seconds + 3600),
        "a lifetime until 9999": ("lives-too-long", seconds, 253_402_300_799),
        "a long lifetime that is nearly over": ("lives-too-long", seconds - 3600, seconds + 60),
        "a lifetime of nothing": ("lives-too-long", seconds, seconds),
        "a lifetime that ends before it begins": ("lives-too-long", seconds, seconds - 1),
    }
    for name, (code, iat, exp) in times.items():
        yield _plain(name, code, good_token(iat=iat, exp=exp))
    headers = good_headers(good_token())
    yield Case("a good request six minutes later", "expired", headers, BODY, now=NOW + 360_000)
    yield Case("a good request a day later", "expired", headers, BODY, now=NOW + 86_400_000)
    yield Case("a good request on a clock that is slow", "not-yet-valid", headers, BODY, now=NOW - 60_001)


def _hash_cases() -> Iterator[Case]:
    headers = good_headers(good_token())
    another = to_json({"statusUpdate": STATUS_UPDATE["statusUpdate"] | {"contextId": "ctx-2"}})
    bodies = {
        "one byte changed": BODY.replace(b"WORKING", b"WORKINH"),
        "one bit changed": bytes([BODY[0] ^ 1]) + BODY[1:],
        "one byte added": BODY + b"\n",
        "one byte cut": BODY[:-1],
        "nothing": b"",
        "a byte order mark added": b"\xef\xbb\xbf" + BODY,
        "the same JSON with spaces": BODY.replace(b":", b": "),
        "another good body": another,
        "the body twice": BODY + BODY,
        "the body compressed": b"\x1f\x8b\x08\x00" + BODY,
    }
    for name, body in bodies.items():
        yield Case(f"a body that is {name}", "wrong-body", headers, body)
    for name, value in (("of another body", ANOTHER_HASH), ("of nothing", sha256(b"").hexdigest()), ("zero", "0" * 64)):
        yield _plain(f"a hash that is {name}", "wrong-body", good_token(request_body_sha256=value))


def _expectation_cases() -> Iterator[Case]:
    headers = good_headers(good_token())
    later = NOW + 1

    def case(name: str, code: str, *expectations: Expected, sent: Headers = headers) -> Case:
        return Case(name, code, sent, BODY, expectations=list(expectations))

    yield case("nothing expected", "unknown-task")
    yield case("another task expected", "unknown-task", {"taskId": "another", "expires": later})
    yield case(
        "another task with the same token", "unknown-task", {"taskId": "another", "token": TOKEN, "expires": later}
    )
    yield case("another token without a task", "unknown-task", {"token": "another", "expires": later})
    yield case("a task id in another case", "unknown-task", {"taskId": TASK.upper(), "token": TOKEN, "expires": later})
    yield case("a task id that goes on", "unknown-task", {"taskId": f"{TASK}-2", "token": TOKEN, "expires": later})
    yield case("an expectation that has expired", "unknown-task", {"taskId": TASK, "token": TOKEN, "expires": NOW})
    expected: Expected = {"taskId": TASK, "token": TOKEN, "expires": later}
    tokens: tuple[Json, ...] = (..., "", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), f" {TOKEN}", f"{TOKEN},{TOKEN}")
    tokens += (sha256(TOKEN.encode()).hexdigest(), f"Bearer {TOKEN}", "null", "ü")
    for value in tokens:
        sent = good_headers(good_token(), X_A2A_Notification_Token=value)
        yield case(f"the client token {_say(value)}", "wrong-token", expected, sent=sent)
    guarded = expected | {"authorization": CREDENTIALS}
    token = good_token()
    credentials: tuple[Json, ...] = (..., "", "Basic d3Jvbmc=", CREDENTIALS.lower(), CREDENTIALS + " ", "Bearer opaque")
    for value in credentials:
        sent = good_headers(token, X_A2A_Notification_JWT=token, Authorization=value)
        yield case(f"the client's credentials {_say(value)}", "wrong-credentials", guarded, sent=sent)
    yield case("our token in place of the client's credentials", "wrong-credentials", guarded)


_UNREADABLE = {
    "not JSON": b"state=working",
    "empty": b"",
    "a string": b'"working"',
    "a list": b"[" + BODY + b"]",
    "null": b"null",
    "an empty object": b"{}",
    "with a byte order mark": b"\xef\xbb\xbf" + BODY,
    "in UTF-16": BODY.decode().encode("utf-16"),
    "not UTF-8": BODY.replace(b"ctx-1", b"ctx\xff1"),
    "in overlong UTF-8": BODY.replace(b"ctx-1", b"ctx\xc0\xaf1"),
    "with NaN": BODY[:-1] + b',"x":NaN}',
    "with Infinity": BODY[:-1] + b',"x":Infinity}',
    "with a number out of range": BODY[:-1] + b',"x":1e999}',
    "with a number of 301 digits": BODY[:-1] + b',"x":' + b"9" * 301 + b"}",
    "with a number of 5000 digits": BODY[:-1] + b',"x":' + b"9" * 5000 + b"}",
    "with a name twice": b'{"statusUpdate":{},' + BODY[1:],
    "with a name twice inside": BODY.replace(b'"contextId"', b'"taskId":"other","contextId"'),
    "with a name twice, once escaped": BODY.replace(b'"contextId"', b'"task\\u0049d":"other","contextId"'),
    "with a lone surrogate": BODY.replace(b"ctx-1", b"\\udc00"),
    "with a lone surrogate as name": BODY[:-1] + b',"\\ud83d":1}',
    "nested 1000 deep": BODY[:-1] + b',"x":' + b"[" * 1000 + b"]" * 1000 + b"}",
    "nested 10000 deep": b"[" * 10_000,
    "nested 65 deep": BODY[:-1] + b',"x":' + b'{"y":' * 64 + b"1" + b"}" * 64 + b"}",
    "with something behind it": BODY + b"null",
    "with a comment": b"/**/" + BODY,
    "with a form feed": b"\x0c" + BODY,
    "with a control character in a string": BODY.replace(b"ctx-1", b"ctx\t1"),
    "with a wrong escape": BODY.replace(b"ctx-1", b"ctx\\x31"),
    "a challenge": to_json(CHALLENGE),
}


def _body_cases() -> Iterator[Case]:
    code = "unreadable-body"
    for name, body in _UNREADABLE.items():
        yield _with_body(f"a body that is {name}", code, body)
    for name, value in _wrong_events().items():
        yield _with_body(f"a body with {name}", code, to_json(value))
    yield from _version_cases()
    other = {"taskId": "another", "contextId": "ctx-1", "status": STATUS}
    artifact = {"artifactId": "a-1", "parts": [{"text": "x"}]}
    others: dict[str, Json] = {
        "a status of another task": {"statusUpdate": other},
        "another task": {"task": {"id": "another", "status": STATUS}},
        "an artifact of another task": {
            "artifactUpdate": {"taskId": "another", "contextId": "c", "artifact": artifact}
        },
        "a task id in another case": {"statusUpdate": other | {"taskId": TASK.upper()}},
    }
    for name, value in others.items():
        yield _with_body(f"a body about {name}", "wrong-task", to_json(value))


def _wrong_events() -> dict[str, Json]:
    update = STATUS_UPDATE["statusUpdate"]
    event = {"taskId": TASK, "contextId": "ctx-1"}

    def status(**changes: Json) -> Json:
        return {"statusUpdate": _changed(update, changes)}

    def parts(value: Json) -> Json:
        return {"artifactUpdate": event | {"artifact": {"artifactId": "a-1", "parts": value}}}

    return {
        "two events": STATUS_UPDATE | {"task": {"id": TASK, "status": STATUS}},
        "an event that is null": {"statusUpdate": None},
        "an event that is a list": {"statusUpdate": [update]},
        "no task id": status(taskId=...),
        "a task id that is a number": status(taskId=7),
        "no status": status(status=...),
        "a status that is a string": status(status="working"),
        "a status without state": status(status={}),
        "an unknown state": status(status={"state": "TASK_STATE_FLYING"}),
        "an unspecified state": status(status={"state": "TASK_STATE_UNSPECIFIED"}),
        "a state of 0.3": status(status={"state": "working"}),
        "a state that is a number": status(status={"state": 2}),
        "a status message without parts": status(status=STATUS | {"message": {"messageId": "m", "role": "ROLE_AGENT"}}),
        "a context that is a number": status(contextId=7),
        "a file name that is a number": parts([{"raw": "aGk=", "filename": 7}]),
        "a media type that is a list": parts([{"text": "x", "mediaType": ["text/plain"]}]),
        "an artifact name that is an object": {
            "artifactUpdate": event | {"artifact": {"artifactId": "a-1", "name": {}, "parts": [{"text": "x"}]}}
        },
        "no artifact": {"artifactUpdate": event},
        "no artifact id": {"artifactUpdate": event | {"artifact": {"parts": [{"text": "x"}]}}},
        "no parts": parts([]),
        "parts that are an object": parts({"text": "x"}),
        "a part that is a string": parts(["x"]),
        "a part with nothing": parts([{"mediaType": "text/plain"}]),
        "a part with two contents": parts([{"text": "x", "url": "https://example.com"}]),
        "a text that is a number": parts([{"text": 7}]),
        "a task without status": {"task": {"id": TASK}},
        "a task whose artifacts are an object": {"task": {"id": TASK, "status": STATUS, "artifacts": {}}},
        "a message without task": {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}},
        "a message without id": {"message": {"taskId": TASK, "role": "ROLE_AGENT", "parts": [{"text": "x"}]}},
        "a whole task of 0.3": {"kind": "task", "id": TASK, "contextId": "c", "status": {"state": "working"}},
    }


def _version_cases() -> Iterator[Case]:
    for version in ("", "1", "1.1", "2.0", "0.2", "1.0, 0.3", " 1.0", "v1.0", "constructor", "1.0.1"):
        yield _with_body(f"the version {version!r}", "unsupported-version", BODY, A2A_Version=version)
    yield _with_body("a 1.0 body under version 0.3", "unreadable-body", BODY, A2A_Version="0.3")
    yield _with_body("a 1.0 body without version", "unreadable-body", BODY, A2A_Version=...)
    old: dict[str, Json] = {"kind": "task", "id": TASK, "contextId": "c", "status": {"state": "working"}}
    changes: dict[str, dict[str, Json]] = {
        "another kind": {"kind": "status-update"},
        "no kind": {"kind": ...},
        "no context": {"contextId": ...},
        "a state of 1.0": {"status": {"state": "TASK_STATE_WORKING"}},
        "an unknown state": {"status": {"state": "unknown"}},
        "a file without content": {"artifacts": [{"artifactId": "a", "parts": [{"kind": "file", "file": {}}]}]},
    }
    for name, change in changes.items():
        body = to_json(_changed(old, change))
        yield _with_body(f"a 0.3 task with {name}", "unreadable-body", body, A2A_Version="0.3")


def _challenge_cases() -> Iterator[Case]:
    open_expectation: list[Expected] = [{"token": "any", "expires": NOW + 1}]
    expired: list[Expected] = [{"token": "any", "expires": NOW}]
    body = to_json(CHALLENGE)
    header = good_header(typ="a2a-challenge+jwt")

    def case(name: str, code: str | None, text: bytes, expectations: list[Expected], **claims: Json) -> Case:
        notification_only = dict.fromkeys(("sub", "taskId", "configId", "notificationId", "eventNumber"), ...)
        token = make_token(header, good_claims(text, **(notification_only | claims)), CURRENT)
        sent = good_headers(token, Content_Type="application/json", X_A2A_Notification_Token=...)
        echo = CHALLENGE["challenge"] if code is None else None
        return Case(f"a challenge {name}", code, sent, text, expectations=expectations, challenge=echo)

    yield case("while something is expected", None, body, open_expectation)
    yield case("with an identity of a task", None, body, open_expectation, sub=TASK)
    yield case("while nothing is expected", "unexpected-challenge", body, [])
    yield case("while everything expected has expired", "unexpected-challenge", body, expired)
    yield case("for another receiver", "wrong-audience", body, open_expectation, aud="https://evil.example/webhook")
    yield case("of another issuer", "wrong-issuer", body, open_expectation, iss="https://evil.example")
    yield case("that has expired", "expired", body, open_expectation, iat=NOW // 1000 - 360, exp=NOW // 1000 - 60)
    yield case("without an id", "malformed-claims", body, open_expectation, jti=...)
    yield case("with another body", "wrong-body", body, open_expectation, request_body_sha256=ANOTHER_HASH)
    yield case("that is a notification", "unreadable-body", BODY, open_expectation)
    wrong: dict[str, Json] = {
        "of another type": CHALLENGE | {"type": "challenge"},
        "without a type": {"challenge": "x"},
        "without a text": {"type": CHALLENGE["type"]},
        "with an empty text": CHALLENGE | {"challenge": ""},
        "with a number": CHALLENGE | {"challenge": 7},
        "with a text of 513 letters": CHALLENGE | {"challenge": "x" * 513},
    }
    for name, value in wrong.items():
        yield case(name, "unreadable-body", to_json(value), open_expectation)
    forged = make_token(header, good_claims(body), STRANGER)
    sent = good_headers(forged, Content_Type="application/json")
    yield Case("a challenge by a stranger", "wrong-signature", sent, body, expectations=open_expectation)
