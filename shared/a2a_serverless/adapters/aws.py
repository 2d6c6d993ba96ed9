"""AWS clients of one boto3 session, each created on first use.

Clients, not resources: a resource would read its service's description a second time. Each client adds to a cold
start, so an adapter that a first request seldom needs takes a function that returns its client. boto3 reads
``AWS_ENDPOINT_URL`` and the region from the environment.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast

from boto3.session import Session
from botocore.config import Config
from botocore.session import get_session

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient

CONNECT_S: Final = 2
READ_S: Final = 10
TRIES: Final = 4
CONNECTIONS: Final = 50
EMULATED: Final = "test"  # the access key of the emulator's account 000000000000
EMULATED_REGION: Final = "us-east-1"
_CONFIG: Final = Config(
    connect_timeout=CONNECT_S,
    read_timeout=READ_S,
    retries={"mode": "standard", "total_max_attempts": TRIES},
    max_pool_connections=CONNECTIONS,
    tcp_keepalive=True,
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)
# For presigned URLs that work in every region and check the checksum of an upload.
_LINKS: Final = Config(signature_version="s3v4", s3={"addressing_style": "virtual"})


class Aws:
    """The clients of one process, each created on first use. Thread-safe."""

    def __init__(self, session: Session | None = None, endpoint: str | None = None) -> None:
        self._own_session = session
        self._endpoint = endpoint
        self._lock = Lock()

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        return cast("DynamoDBClient", self.client("dynamodb"))

    @cached_property
    def sqs(self) -> SQSClient:
        return cast("SQSClient", self.client("sqs"))

    @cached_property
    def s3(self) -> S3Client:
        return cast("S3Client", self.client("s3"))

    @cached_property
    def secrets(self) -> SecretsManagerClient:
        return cast("SecretsManagerClient", self.client("secretsmanager"))

    @cached_property
    def kms(self) -> KMSClient:
        return cast("KMSClient", self.client("kms"))

    @cached_property
    def session(self) -> Session:
        return self._own_session or Session()

    def client(self, service: str, read_s: float = READ_S, tries: int = TRIES) -> Any:  # noqa: ANN401 - boto3's type
        """A client of any service, with our timeouts. It tries a call at most ``tries`` times."""
        config = _CONFIG.merge(_LINKS) if service == "s3" else _CONFIG
        config = config.merge(Config(read_timeout=read_s, retries={"mode": "standard", "total_max_attempts": tries}))
        session: Any = self.session  # its types name each service
        with self._lock:  # a session makes one client at a time
            return session.client(service, endpoint_url=self._endpoint, config=config)


def emulated(endpoint: str) -> Aws:
    """Clients of the emulator at ``endpoint``; they ignore the machine's own AWS settings."""
    settings = get_session()
    settings.set_config_variable("profile", None)
    return Aws(Session(EMULATED, EMULATED, region_name=EMULATED_REGION, botocore_session=settings), endpoint)
