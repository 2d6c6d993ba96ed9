"""fasta2a as its documentation builds a server: under Mangum, an echo worker, store and broker in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.schema import Artifact, Part, TaskIdParams, TaskSendParams
from fasta2a.storage import InMemoryStorage
from mangum import Mangum


class Echo(Worker[Any]):
    """A task whose artifacts are the words that the client said, separated by commas."""

    async def run_task(self, params: TaskSendParams) -> None:
        """Working, then completed with the artifacts, which a stream gets one by one."""
        await self.storage.update_task(params["id"], state="working")
        artifacts = self.build_artifacts(params["message"]["parts"][0]["text"])
        for artifact in artifacts:
            await self.publish_artifact(params["id"], params["context_id"], artifact)
        await self.storage.update_task(params["id"], state="completed", new_artifacts=artifacts)

    async def cancel_task(self, params: TaskIdParams) -> None:
        """Nothing here runs long enough."""

    def build_message_history(self, history: list[Any]) -> list[Any]:
        """As it is."""
        return history

    def build_artifacts(self, result: Any) -> list[Artifact]:  # noqa: ANN401 - the base class says so
        """An artifact for each word."""
        words = enumerate(result.split(","))
        return [Artifact(artifact_id=f"echo-{number}", name="echo", parts=[Part(text=word)]) for number, word in words]


store: InMemoryStorage[Any] = InMemoryStorage()
broker = InMemoryBroker()


@asynccontextmanager
async def lifespan(app: FastA2A) -> AsyncIterator[None]:
    """The worker runs as long as the server."""
    async with app.task_manager, Echo(broker=broker, storage=store).run():
        yield


app = FastA2A(storage=store, broker=broker, lifespan=lifespan)
handler = Mangum(app, lifespan="on")
