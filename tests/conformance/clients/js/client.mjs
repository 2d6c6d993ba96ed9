// The official JavaScript SDK as a client. Knows nothing of ours.
// `node client.mjs <agent's URL> <JSONRPC|HTTP+JSON> <webhook> <streamed|buffered>` prints one JSON object: what came of
// each deed. A place that is `buffered` tells a stream when it has ended.
import {
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTasksRequest,
  SendMessageRequest,
  SubscribeToTaskRequest,
  TaskPushNotificationConfig,
  taskStateToJSON,
  verifyAgentCardSignature,
} from "@a2a-js/sdk";
import * as sdk from "@a2a-js/sdk/client";

import { allOf, factoryOf, newId, refused } from "./common.mjs";

const [url, binding, webhook, pace] = process.argv.slice(2);
const card = await new sdk.DefaultAgentCardResolver().resolve(`${url}/`);
// Where a test has put the deployment; the card says where its users find it.
const here = { ...card, supportedInterfaces: card.supportedInterfaces.map((one) => ({ ...one, url })) };
const client = await new sdk.ClientFactory({ transports: [factoryOf(binding, sdk)] }).createFromAgentCard(here);

const request = (prefix, fields = {}, configuration = undefined) =>
  SendMessageRequest.fromJSON({
    message: { messageId: newId(prefix), role: "ROLE_USER", parts: [{ text: "hello" }], ...fields },
    configuration,
  });
const state = (task) => taskStateToJSON(task.status.state);
const text = (parts) => parts.map((part) => part.content.value).join("");

function told({ payload }) {
  const { $case: kind, value } = payload;
  if (kind === "artifactUpdate") return [kind, text(value.artifact.parts)];
  return kind === "message" ? [kind, text(value.parts)] : [kind, state(value)];
}

async function verified() {
  // From the deployment that this client was told of: the `jku` of a card is a hint, which its forger writes.
  const keySet = `${url.slice(0, url.lastIndexOf("/"))}/.well-known/jwks.json`;
  const verify = verifyAgentCardSignature(async (kid) => {
    const { keys } = await (await fetch(keySet)).json();
    return keys.find((key) => key.kid === kid);
  });
  await verify(card);
  const altered = await refused(() => verify({ ...card, description: `${card.description}!` }));
  return { name: card.name, altered: altered === "served" ? "accepted" : "refused" };
}

async function sends() {
  const whole = await client.sendMessage(request("tck-complete-task"));
  const said = await client.sendMessage(request("tck-message-response"));
  return {
    send: [state(whole), text(whole.status.message.parts)],
    message: text(said.parts),
    "at once": state(await client.sendMessage(request("tck-input-required", {}, { returnImmediately: true }))),
    stream: await allOf(client.sendMessageStream(request("tck-stream-artifact-chunked")), told),
    "stream of a message": await allOf(client.sendMessageStream(request("tck-message-response")), told),
  };
}

async function asks() {
  const opened = await client.sendMessage(request("tck-input-required"));
  const working = () => client.sendMessage(request("test-resubscribe-message-id", {}, { returnImmediately: true }));
  const { id } = pace === "buffered" ? await working() : opened;
  const subscription = client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }));
  const first = told((await subscription.next()).value);
  const rest = allOf(subscription, told);
  const ended = await client.sendMessage(request("tck-complete-task", { taskId: opened.id }));
  const got = await client.getTask(GetTaskRequest.fromJSON({ id: opened.id, historyLength: 1 }));
  return {
    asked: state(opened),
    subscription: [first, ...(await rest)],
    answered: state(ended),
    history: got.history.length,
  };
}

async function lists() {
  const contextId = newId("context");
  for (const prefix of ["tck-complete-task", "tck-reject-task", "tck-input-required"]) {
    await client.sendMessage(request(prefix, { contextId }));
  }
  const list = (fields) => client.listTasks(ListTasksRequest.fromJSON({ contextId, ...fields }));
  const first = await list({ pageSize: 2 });
  const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
  const waiting = await list({ status: "TASK_STATE_INPUT_REQUIRED" });
  const canceled = await client.cancelTask(CancelTaskRequest.fromJSON({ id: waiting.tasks[0].id }));
  return {
    list: [...first.tasks, ...second.tasks].map(state),
    total: first.totalSize,
    waiting: waiting.tasks.length,
    cancel: state(canceled),
  };
}

async function pushes() {
  const config = { id: "mine", url: webhook, token: "a-token-of-the-client" };
  const asked = request("tck-input-required", {}, { taskPushNotificationConfig: config });
  const { id: taskId } = await client.sendMessage(asked);
  const other = TaskPushNotificationConfig.fromJSON({ taskId, url: "https://example.com/hook" });
  const created = await client.createTaskPushNotificationConfig(other);
  const named = { taskId, id: "mine" };
  const got = await client.getTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest.fromJSON(named));
  const all = () =>
    client.listTaskPushNotificationConfig(ListTaskPushNotificationConfigsRequest.fromJSON({ taskId }));
  const listed = await all();
  const gone = { taskId, id: created.id };
  await client.deleteTaskPushNotificationConfig(DeleteTaskPushNotificationConfigRequest.fromJSON(gone));
  const left = await all();
  return {
    "task with a webhook": taskId,
    webhook: TaskPushNotificationConfig.toJSON(got),
    webhooks: listed.configs.length,
    left: left.configs.map((one) => one.id),
  };
}

async function refusals() {
  const { id } = await client.sendMessage(request("tck-complete-task"));
  return {
    "unknown task": await refused(() => client.getTask(GetTaskRequest.fromJSON({ id: "nowhere" }))),
    "cancel of an ended task": await refused(() => client.cancelTask(CancelTaskRequest.fromJSON({ id }))),
    "subscription to an ended task": await refused(() =>
      allOf(client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id })), told),
    ),
    "message to an ended task": await refused(() => client.sendMessage(request("x", { taskId: id }))),
  };
}

console.log(
  JSON.stringify({
    card: await verified(),
    ...(await sends()),
    ...(await asks()),
    ...(await lists()),
    ...(await pushes()),
    refusals: await refusals(),
  }),
);
