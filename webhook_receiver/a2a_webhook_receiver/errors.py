"""The reasons for which a request is refused, as one class tree: classes map to answers, so no code parses messages.

``code`` names the broken rule, in the inbox and in the log. ``step`` names the check that failed. The sender of an
unauthentic request gets neither: every ``Unauthentic`` has the same answer.
"""

from typing import ClassVar, Literal, get_args

Step = Literal["transport", "token", "key", "signature", "claims", "body hash", "expectation", "body", "replay"]
STEPS: tuple[Step, ...] = get_args(Step)
"""The checks, in the order in which they run."""


class Refused(Exception):
    """A request that has no effect. The message says what is wrong, without any secret."""

    code: ClassVar[str] = "refused"
    step: ClassVar[Step] = "transport"


class Unauthentic(Refused):
    """No proof that our issuer sent this to us, recently, about something that we asked for."""


class NoSignature(Unauthentic):
    """Neither header holds a token."""

    code = "no-signature"
    step = "token"


class DuplicateHeader(Unauthentic):
    """A header that is used came twice: two readers could each use another value."""

    code = "duplicate-header"
    step = "transport"


class AmbiguousSignature(Unauthentic):
    """Both headers hold a token of the issuer's type."""

    code = "ambiguous-signature"
    step = "token"


class MalformedToken(Unauthentic):
    """The token is not three segments of canonical base64url, or its header is not the expected JSON object."""

    code = "malformed-token"
    step = "token"


class ForbiddenHeader(Unauthentic):
    """The token's header holds more than ``alg``, ``typ`` and ``kid``."""

    code = "forbidden-header"
    step = "token"


class WrongAlgorithm(Unauthentic):
    """The algorithm is not ES256."""

    code = "wrong-algorithm"
    step = "token"


class WrongType(Unauthentic):
    """The token was made for another purpose."""

    code = "wrong-type"
    step = "token"


class UnknownKey(Unauthentic):
    """The issuer does not publish the key that the token names."""

    code = "unknown-key"
    step = "key"


class WrongSignature(Unauthentic):
    """The named key did not sign this token."""

    code = "wrong-signature"
    step = "signature"


class MalformedClaims(Unauthentic):
    """A claim is missing or has the wrong type."""

    code = "malformed-claims"
    step = "claims"


class WrongIssuer(Unauthentic):
    """The token is of another issuer."""

    code = "wrong-issuer"
    step = "claims"


class WrongAudience(Unauthentic):
    """The token is for another receiver."""

    code = "wrong-audience"
    step = "claims"


class Expired(Unauthentic):
    """The token has expired, by more than the tolerated clock difference."""

    code = "expired"
    step = "claims"


class NotYetValid(Unauthentic):
    """The token was issued in the future, by more than the tolerated clock difference."""

    code = "not-yet-valid"
    step = "claims"


class LivesTooLong(Unauthentic):
    """The token is valid for more than five minutes: a stolen one could be used for too long."""

    code = "lives-too-long"
    step = "claims"


class WrongBody(Unauthentic):
    """The body is not the one that was signed."""

    code = "wrong-body"
    step = "body hash"


class UnknownTask(Unauthentic):
    """Nothing that we registered matches this task and token."""

    code = "unknown-task"
    step = "expectation"


class WrongToken(Unauthentic):
    """``X-A2A-Notification-Token`` is missing, or is not the one registered for this task."""

    code = "wrong-token"
    step = "expectation"


class WrongCredentials(Unauthentic):
    """``Authorization`` does not hold the credentials registered for this task."""

    code = "wrong-credentials"
    step = "expectation"


class UnexpectedChallenge(Unauthentic):
    """Somebody registered our URL for notifications, but no token or task is registered here."""

    code = "unexpected-challenge"
    step = "expectation"


class Replayed(Unauthentic):
    """The token was used before, with other content."""

    code = "replayed"
    step = "replay"


class WrongTask(Unauthentic):
    """The body is about another task than the token."""

    code = "wrong-task"
    step = "body"


class Unreadable(Refused):
    """Authentic, but the body does not have the form that A2A requires. Sending it again would not help."""

    code = "unreadable-body"
    step = "body"


class UnsupportedVersion(Unreadable):
    """The version of A2A is neither 1.0 nor 0.3."""

    code = "unsupported-version"
    step = "body"


class UnsupportedMedia(Refused):
    """The body is not JSON, or is compressed."""

    code = "unsupported-media"
    step = "transport"


class TooLarge(Refused):
    """The body is longer than the limit."""

    code = "too-large"
    step = "transport"


class TooSlow(Refused):
    """The body did not arrive in time."""

    code = "too-slow"
    step = "transport"


class TryLater(Refused):
    """The receiver cannot decide now. ``retry_after`` is the number of seconds after which to try again."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class KeysUnavailable(TryLater):
    """The issuer's keys cannot be fetched now."""

    code = "keys-unavailable"
    step = "key"


class StillWorking(TryLater):
    """An earlier attempt of the same notification is still being handled."""

    code = "still-working"
    step = "replay"
