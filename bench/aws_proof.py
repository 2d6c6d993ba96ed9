"""Shows in an AWS account what only AWS can show, and writes down what it saw: ``make prove KIND=aws REGION=...``.

It deploys two stacks and a webhook receiver, uses them, upgrades and restores the first one, and deletes all that it
made. It takes about an hour, half of it for a restored table. What it uses costs some cents; less than a dollar in
any case. ``docs/evidence.json`` gets the verdict of each step, with seconds and counts, and no id, name or address of
the account.

``--emulator`` rehearses the same steps in the emulator on this machine, without streaming and without the wait for a
new signing key, and writes what it saw where ``--out`` says.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import secrets
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from boto3.session import Session
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from a2a_serverless.client import Client, HttpError, open_request, text_message
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task, TaskState
from a2a_serverless_tools.stack import local_stack, processes, sam
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.emulator import aws_environment, start_emulator, without_aws
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.targets import Build, Target, this_machine
from redeploy import SLOW, checkout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

EVIDENCE: Final = CHECKOUT / "docs/evidence.json"
STACK, SECOND, RECEIVER = "a2a-serverless-proof", "a2a-serverless-proof-2", "a2a-serverless-proof-receiver"
SAMPLES: Final = ("orchestrator", "outline", "document", "summary")
STEPS: Final = 10
DIES_AFTER_S: Final = 12  # later than a run's first renewal of its lease
TIMEOUT_S: Final = 900
RESTORE_S: Final = 5_400  # DynamoDB restores even a small table in twenty minutes at the earliest
UNAUTHORIZED: Final = 401
FRAGILE: Final = f'''

import os
import signal
import time


@agent(id="fragile", name="Fragile", description="Dies once.", skills=[Skill("die", "Die", "Dies once.", ("die",))])
async def fragile(task: TaskContext) -> None:
    """A step during which the first worker ends without a word."""
    began = await task.step("begin", time.time)
    await task.emit("steps.txt", "begun\\n", append=True)
    passed = await task.step("die once", die_once, began)
    await task.emit("steps.txt", f"{{passed}}\\n", append=True, last=True)


async def die_once(began: float) -> int:
    """Kills the process in its first run; returns the seconds since the beginning in the second one."""
    if time.time() - began < {2 * DIES_AFTER_S}:
        await asyncio.sleep({DIES_AFTER_S})
        os.kill(os.getpid(), signal.SIGKILL)
    return round(time.time() - began)
'''


class ProofFailed(Exception):
    """A step did not show what it should."""


@dataclass(frozen=True)
class Account:
    """Where the proof runs: ``environment`` is that of SAM and of the commands.

    In the emulator ``options`` has the ports of the local servers, and ``endpoint`` is where it listens.
    """

    environment: Mapping[str, str]
    region: str
    target: Target = field(default_factory=Target)
    endpoint: str = ""
    options: local_stack.Options = field(default_factory=local_stack.Options)

    @property
    def parameters(self) -> dict[str, str]:
        return local_stack.local_parameters(self.options) if self.endpoint else self.target.parameters

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes the type
        """Makes a boto3 client."""
        if self.endpoint:
            return sam.client(service, self.endpoint)
        return Session(region_name=self.region).client(service)  # type: ignore[call-overload]

    def template(self, built: Build, stack: str, here: Paths) -> Path:
        """The template to deploy; in the emulator with the switches of a local run."""
        if not self.endpoint:
            return built.path / "template.yaml"
        switches = local_stack.local_switches(self.options) | {"ANONYMOUS_ACCESS": "off"}
        return sam.write_variant(built, sam.with_switches(built.template, switches), here.state / "switched" / stack)


@dataclass
class Proof:
    """One run, and what it has seen so far: a verdict and numbers for each step."""

    account: Account
    here: Paths
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: dict[str, list[str]] = field(default_factory=dict)
    receiver: str = ""
    password: str = field(default_factory=lambda: secrets.token_hex(16))
    servers: list[processes.Process] = field(default_factory=list)

    def note(self, step: str, verdict: str, seconds: float, **numbers: float) -> None:
        """Keeps what a step has shown. Only numbers: an id could name the account."""
        self.results[step] = {"verdict": verdict, "seconds": round(seconds, 1), **numbers}
        print(f"{verdict}  {step} ({seconds:.0f} s) {numbers or ''}", file=sys.stderr)

    def url(self, stack: str = STACK) -> str:
        """Where clients call a stack."""
        if not self.account.endpoint:
            return self.outputs[stack]["ApiUrl"]
        if stack == STACK:
            return self.account.options.api_url
        return sam.Deployment(self.account.endpoint, self.outputs[stack]).rest_url

    def agent(self, name: str, stack: str = STACK, key: str = "") -> Client:
        """A client of an agent, which signs in with the first key of the stack, or with ``key``."""
        return Client(
            f"{self.url(stack)}/{name}", open_request, {"Authorization": f"Bearer {key or self.keys[stack][0]}"}
        )

    def command(self, *words: str, **variables: str) -> Any:  # noqa: ANN401 - any JSON
        """Runs a command of the program; returns its JSON. A check that fails has JSON, too."""
        program = Path(sys.executable).with_name("a2a-serverless")
        environment = {**self.account.environment, **variables}
        done = subprocess.run([program, *words, "--json"], env=environment, capture_output=True, text=True, check=False)
        if not done.stdout:
            raise ProofFailed(f"{' '.join(words)}: {done.stderr[-2000:]}")
        return json.loads(done.stdout)


def deploy(proof: Proof, stack: str = STACK) -> None:
    """Builds the project and deploys it, with the commands of docs/deploy.md; makes two API keys of a new stack."""
    account, here = proof.account, proof.here
    built = build(here, account.target)
    words: list[str | Path] = ["--stack-name", stack, "--template-file", account.template(built, stack, here)]
    words += ["--no-confirm-changeset", "--no-fail-on-empty-changeset", *sam.overrides(account.parameters)]
    sam.run_sam(here, "deploy", words, dict(account.environment))
    (found,) = account.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    proof.outputs[stack] = {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}
    if stack not in proof.keys:
        proof.keys[stack] = [
            proof.command("callers", "add", owner, "--stack", stack)["key"] for owner in ("alice", "bob")
        ]
    if account.endpoint and stack == STACK:
        serve(proof, built)


def serve(proof: Proof, built: Build) -> None:
    """Starts the api and the receiver on this machine again: the emulator cannot stream, nor take webhooks."""
    for server in proof.servers:
        processes.stop(proof.here, server)
    deployment = sam.Deployment(proof.account.endpoint, proof.outputs[STACK])
    api = local_stack.start_api(proof.here, built, deployment, proof.account.options)
    receiver = local_stack.start_receiver(proof.here, proof.account.options)
    proof.servers, proof.receiver = [api, receiver], receiver.url
    for server in proof.servers:
        processes.wait_until_ready(server, "/", seconds=local_stack.READY_S)


def deploy_receiver(proof: Proof) -> None:
    """Deploys the webhook receiver as a stack of its own, as its README says."""
    if proof.account.endpoint:
        return
    folder, env = proof.here.root / "webhook_receiver", dict(proof.account.environment)
    built = proof.here.state / "receiver"
    sam.run_sam(proof.here, "build", ["--template-file", folder / "template.yaml", "--build-dir", built], env)
    values = {"Issuer": proof.url(), "AdminTokenSha256": sha256(proof.password.encode()).hexdigest()}
    words: list[str | Path] = ["--stack-name", RECEIVER, "--template-file", built / "template.yaml"]
    sam.run_sam(proof.here, "deploy", [*words, "--no-confirm-changeset", *sam.overrides(values)], env)
    (found,) = proof.account.client("cloudformation").describe_stacks(StackName=RECEIVER)["Stacks"]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}
    proof.receiver = outputs["InboxUrl"].rstrip("/")


def check(proof: Proof) -> dict[str, float]:
    """Runs ``check`` with a rotation of the signing keys, and notes each of its lines as a step."""
    words = ["check", proof.url(), "--stack", STACK, "--rotate", "--receiver", proof.receiver, "--timeout", "420"]
    alice, bob = proof.keys[STACK]
    if not proof.account.endpoint:
        wait_until(
            lambda: proof.command("keys", "show", "--stack", STACK)["next"]["promotableAt"] < now(), "a next key"
        )
    lines = proof.command(
        *words,
        A2A_AUTHORIZATION=f"Bearer {alice}",
        A2A_OTHER_AUTHORIZATION=f"Bearer {bob}",
        A2A_RECEIVER_AUTHORIZATION=f"Bearer {proof.password}",
    )["checks"]
    for line in lines:
        proof.note(f"check: {line['name']}", line["verdict"], line["seconds"])
    return {"lines": len(lines)}


def run_demo(proof: Proof) -> dict[str, float]:
    """The orchestrator's agents call each other: outline, document, summary."""
    text = (CHECKOUT / "examples/demo.md").read_text()
    task = finish(proof.agent("orchestrator"), begin(proof.agent("orchestrator"), text))
    if task.status.state is not TaskState.COMPLETED:
        raise ProofFailed(f"the chain of agents is {task.status.state}")
    return {"artifacts": len(task.artifacts)}


def kill_worker(proof: Proof) -> dict[str, float]:
    """A worker kills itself in the middle of a step; another one goes on, and no finished step runs again."""
    agent = proof.agent("fragile")
    task = finish(agent, begin(agent, "go"))
    lines = task.artifacts[0].text().split() if task.artifacts else []
    if task.status.state is not TaskState.COMPLETED or len(lines) != 2 or lines[0] != "begun":  # noqa: PLR2004
        raise ProofFailed(f"the task is {task.status.state}, with {lines}")
    return {"recovered_after_s": int(lines[1]) - DIES_AFTER_S}


def upgrade(proof: Proof) -> dict[str, float]:
    """Deploys a new release while one task works and one waits for an answer; both end, and each step runs once."""
    agent = proof.agent("slow")
    waiting = begin(agent, str(STEPS))
    wait_until(lambda: agent.get(waiting).status.state is TaskState.INPUT_REQUIRED, "a question")
    working = begin(agent, str(STEPS))
    module = proof.here.root / "proof.py"
    module.write_text(module.read_text().replace("RELEASE = 1", "RELEASE = 2"))
    deploy(proof)
    counts = [0, 0]
    for task_id in (waiting, working):
        wait_until(lambda one=task_id: agent.get(one).status.state is TaskState.INPUT_REQUIRED, "a question")  # type: ignore[misc]
        begin(agent, "yes", task_id)
        lines = finish(agent, task_id).artifacts[0].text().splitlines()
        if [int(line.split()[0]) for line in lines] != list(range(STEPS)):
            raise ProofFailed(f"not each of {STEPS} steps once: {lines}")
        for index, release in enumerate(("1", "2")):
            counts[index] += sum(line.endswith(release) for line in lines)
    return {"steps_on_the_old_release": counts[0], "steps_on_the_new_release": counts[1]}


def restore(proof: Proof) -> dict[str, float]:
    """Loses two tasks and a caller, and gets them back from copies that DynamoDB makes of both tables."""
    database, agent = proof.account.client("dynamodb"), proof.agent("slow")
    tables = [proof.outputs[STACK][name] for name in ("TableName", "AccessTableName")]
    caller = proof.command("callers", "add", "carol", "--stack", STACK)
    ended, waiting = (begin(agent, str(STEPS)) for _ in range(2))
    for task_id in (ended, waiting):
        wait_until(lambda one=task_id: agent.get(one).status.state is TaskState.INPUT_REQUIRED, "a question")  # type: ignore[misc]
    begin(agent, "yes", ended)
    before = finish(agent, ended)
    made_at = time.time()
    for table in tables:
        wait_until(lambda one=table: _restorable_at(database, one) >= made_at, "a moment to restore to")  # type: ignore[misc]
    began = time.monotonic()
    try:
        for table in tables:
            copy = {"SourceTableName": table, "TargetTableName": f"{table}-restored", "UseLatestRestorableTime": True}
            database.restore_table_to_point_in_time(**copy)
        for table in tables:
            wait_until(lambda one=table: _is_active(database, f"{one}-restored"), "a restored table", RESTORE_S)  # type: ignore[misc]
        copied_s = time.monotonic() - began
        proof.command("callers", "remove", caller["id"], "--stack", STACK)
        for task_id in (ended, waiting):
            lose(database, tables[0], task_id)
        if "error" not in proof.command("restore", "--table", tables[0], "--dry-run", "--stack", STACK):
            raise ProofFailed("a table that is no copy is not refused")
        words = ("--table", f"{tables[0]}-restored", "--access-table", f"{tables[1]}-restored")
        counts = proof.command("restore", *words, "--yes", "--stack", STACK)
    finally:
        for table in tables:
            with suppress(database.exceptions.ResourceNotFoundException):
                database.delete_table(TableName=f"{table}-restored")
    named = [counts.get(name) for name in ("tasks", "unfinished", "apiKeys")]
    if named != [2, 1, 1] or agent.get(ended) != before:
        raise ProofFailed(f"not all is there again: {counts}")
    proof.agent("slow", key=caller["key"]).task_ids("none")  # the restored key is accepted
    begin(agent, "yes", waiting)
    lines = finish(agent, waiting).artifacts[0].text().splitlines()
    if [int(line.split()[0]) for line in lines] != list(range(STEPS)):
        raise ProofFailed(f"not each of {STEPS} steps once: {lines}")
    return {"tasks": counts["tasks"], "callers": counts["apiKeys"], "copied_after_s": round(copied_s)}


def _restorable_at(database: Any, table: str) -> float:  # noqa: ANN401 - boto3 makes the type
    """The latest moment (s) to which the table can be restored. The emulator names none and restores to the present."""
    backups = database.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    latest = backups["PointInTimeRecoveryDescription"].get("LatestRestorableDateTime")
    return float(latest.timestamp()) if latest else math.inf


def _is_active(database: Any, table: str) -> bool:  # noqa: ANN401 - boto3 makes the type
    return str(database.describe_table(TableName=table)["Table"]["TableStatus"]) == "ACTIVE"


def lose(database: Any, table: str, task_id: str) -> None:  # noqa: ANN401 - boto3 makes the type
    """Deletes the items of a task, as no command does: `erase` would wait until no worker can be at it."""
    for page in database.get_paginator("scan").paginate(TableName=table, ProjectionExpression="pk, sk"):
        for item in page["Items"]:
            if item["pk"]["S"].startswith("TASK#") and item["pk"]["S"].endswith(f"/{task_id}"):
                database.delete_item(TableName=table, Key=item)


def stand_beside(proof: Proof) -> dict[str, float]:
    """A second stack of the same template in the same region; neither accepts the other's callers."""
    deploy(proof, SECOND)
    proof.agent("document", SECOND).task_ids("none")
    for stack, other in ((STACK, SECOND), (SECOND, STACK)):
        try:
            proof.agent("document", stack, proof.keys[other][0]).get("task")
        except HttpError as error:
            if error.status == UNAUTHORIZED:
                continue
            raise
        raise ProofFailed(f"a caller of {other} is accepted by {stack}")
    return {}


def delete(proof: Proof) -> dict[str, float]:
    """Deletes the stacks by ``sam delete``, then what they keep on purpose. What fails does not stop the rest."""
    left, wrong = 0, list[str]()
    for stack in (SECOND, RECEIVER, STACK):
        try:
            if is_deployed(proof.account, stack):
                delete_stack(proof, stack)
                left += remove_kept(proof, proof.outputs.get(stack, {}))
        except (StackError, ProofFailed, BotoCoreError, ClientError) as error:
            wrong.append(f"{stack}: {error}")
    if wrong:
        raise ProofFailed("; ".join(wrong))
    return {"kept_and_then_removed": left}


def is_deployed(account: Account, stack: str) -> bool:
    """Whether the stack is there, in whichever state."""
    try:
        (found,) = account.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except ClientError:
        return False
    return str(found["StackStatus"]) != "DELETE_COMPLETE"


def delete_stack(proof: Proof, stack: str) -> None:
    """Deletes a stack as docs/deploy.md says. SAM cannot read the emulator's addresses of uploaded templates."""
    if proof.account.endpoint:
        proof.account.client("cloudformation").delete_stack(StackName=stack)
        wait_until(lambda: not is_deployed(proof.account, stack), "the end of a stack")
        return
    words: list[str | Path] = ["--stack-name", stack, "--no-prompts", "--region", proof.account.region]
    sam.run_sam(proof.here, "delete", words, dict(proof.account.environment))


def remove_kept(proof: Proof, outputs: Mapping[str, str]) -> int:
    """Deletes what a deleted stack keeps: tables, bucket, sealing key, the rotator's logs. Returns how many."""
    if "TableName" not in outputs:
        return 0
    database, storage = proof.account.client("dynamodb"), proof.account.client("s3")
    for table in (outputs["TableName"], outputs["AccessTableName"]):
        database.delete_table(TableName=table)
    for page in storage.get_paginator("list_objects_v2").paginate(Bucket=outputs["BlobsBucket"]):
        for one in page.get("Contents", []):
            storage.delete_object(Bucket=outputs["BlobsBucket"], Key=one["Key"])
    storage.delete_bucket(Bucket=outputs["BlobsBucket"])
    proof.account.client("kms").schedule_key_deletion(KeyId=outputs["SealingKeyId"], PendingWindowInDays=7)
    (rotator,) = [name for name in outputs["LogGroups"].split() if "RotatorLogs" in name]
    proof.account.client("logs").delete_log_group(logGroupName=rotator)
    return 5


JOURNEY: Final[dict[str, Callable[[Proof], dict[str, float]]]] = {
    "check": check,
    "demo": run_demo,
    "killed worker": kill_worker,
    "upgrade": upgrade,
    "restore": restore,
    "second stack": stand_beside,
}


def begin(agent: Client, text: str, task_id: str | None = None) -> str:
    """Sends a message without waiting; returns the task's id."""
    configuration = SendMessageConfiguration(return_immediately=True)
    request = SendMessageRequest(message=text_message(text, task_id=task_id), configuration=configuration)
    sent = agent.send(request)
    if not isinstance(sent, Task):
        raise ProofFailed("the agent answered with a message and made no task")
    return sent.id


def finish(agent: Client, task_id: str) -> Task:
    """Waits until the task has ended; returns it."""
    wait_until(lambda: agent.get(task_id).status.state in TERMINAL, "the end of a task")
    return agent.get(task_id)


def wait_until(reached: Callable[[], bool], what: str, seconds: float = TIMEOUT_S) -> None:
    """Returns when it is so. Raises ProofFailed after ``seconds``."""
    until = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > until:
            raise ProofFailed(f"{what} did not come within {seconds:.0f} s")
        time.sleep(1)


def now() -> str:
    """The time as the commands print it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_project(folder: Path) -> Paths:
    """Makes a project with the samples and the agents of the proof. Its signing keys wait for three minutes only."""
    agents = [*(f"sample_agents.{name}:{name}" for name in SAMPLES), "proof:slow", "proof:fragile"]
    here = checkout(folder, "proof", SLOW + FRAGILE, agents, "shared/sample_agents", "webhook_receiver")
    template = folder / "template.yaml"
    template.write_text(template.read_text().replace('JWKS_MAX_AGE_SECONDS: "3600"', 'JWKS_MAX_AGE_SECONDS: "60"'))
    return here


def prove(proof: Proof) -> bool:
    """Runs every step; returns whether all have shown what they should. Without a deployment there are no others."""
    take(proof, "deploy", deploy_all)
    if proof.results["deploy"]["verdict"] == "PASS":
        for name, step in JOURNEY.items():
            take(proof, name, step)
    return not any(one["verdict"] == "FAIL" for one in proof.results.values())


def deploy_all(proof: Proof) -> dict[str, float]:
    """Deploys the first stack and the receiver."""
    deploy(proof)
    deploy_receiver(proof)
    return {}


def take(proof: Proof, name: str, step: Callable[[Proof], dict[str, float]]) -> None:
    """Runs one step and notes its verdict."""
    began = time.monotonic()
    try:
        numbers = step(proof)
    except Exception as error:  # noqa: BLE001 - a step that fails is a verdict, and does not stop the next
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        proof.note(name, "FAIL", time.monotonic() - began)
    else:
        proof.note(name, "PASS", time.monotonic() - began, **numbers)


@contextmanager
def account_in_emulator(here: Paths) -> Iterator[Account]:
    """An emulator on this machine while the block lasts."""
    emulator, api, receiver = (processes.claim_port(part, 0) for part in ("emulator", "api", "receiver"))
    options = local_stack.Options(emulator, api, receiver)
    try:
        endpoint = start_emulator(here, port=options.emulator_port).url
        environment = without_aws(os.environ) | aws_environment(endpoint)
        yield Account(environment, "us-east-1", this_machine(), endpoint, options)
    finally:
        local_stack.down(here, Console(stderr=True))


@contextmanager
def account_in(region: str) -> Iterator[Account]:
    """The account of the current credentials. Raises ProofFailed where a stack of the proof stands already."""
    found = Account({**os.environ, "AWS_DEFAULT_REGION": region, "AWS_REGION": region}, region)
    try:
        found.client("sts").get_caller_identity()
    except (BotoCoreError, ClientError) as error:
        raise ProofFailed(f"no AWS credentials ({type(error).__name__}): set AWS_PROFILE") from error
    for stack in (STACK, SECOND, RECEIVER):
        if is_deployed(found, stack):
            raise ProofFailed(f"the stack {stack} stands already in {region}: delete it first")
    yield found


def write(proof: Proof, out: Path) -> None:
    """Writes what was seen."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    where = "the emulator" if proof.account.endpoint else proof.account.region
    document = {"date": now()[:10], "where": where, "commit": commit.stdout.strip(), "steps": proof.results}
    out.write_text(json.dumps(document, indent=2) + "\n")


def main() -> int:
    """Runs the proof and writes its evidence; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--region", default="", help="such as eu-central-1")
    parser.add_argument("--emulator", action="store_true", help="rehearse in the emulator on this machine")
    parser.add_argument("--out", type=Path, help="the file to write; docs/evidence.json by default")
    given = parser.parse_args()
    if given.emulator == bool(given.region):
        parser.error("REGION=... names the region to deploy in: make prove KIND=aws REGION=eu-central-1")
    if given.emulator and not given.out:
        parser.error("a rehearsal is no evidence about AWS: --out names its file")
    here = make_project(CHECKOUT / ".a2a/aws-proof")
    with ExitStack() as entered:
        try:
            account = entered.enter_context(account_in_emulator(here) if given.emulator else account_in(given.region))
        except ProofFailed as error:
            print(error, file=sys.stderr)
            return 1
        proof, passed = Proof(account, here), False
        try:
            passed = prove(proof)
        finally:
            take(proof, "delete", delete)
            write(proof, given.out or EVIDENCE)
    return int(not passed or proof.results["delete"]["verdict"] != "PASS")


if __name__ == "__main__":
    sys.exit(main())
