// The official JavaScript SDK for A2A 0.3 as a client. Knows nothing of ours.
// `node client_0_3.mjs <agent's URL> <JSONRPC|HTTP+JSON> <webhook> <streamed|buffered>` prints one JSON object: what came
// of each deed. A place that is `buffered` tells a stream when it has ended.
import * as sdk from "@a2a-js/sdk-0.3/client";

import { allOf, factoryOf, newId, refused } from "./common.mjs";

const [url, binding, webhook, pace] = process.argv.slice(2);
const card = await new sdk.DefaultAgentCardResolver().resolve(`${url}/`);
const here = { ...card, url, preferredTransport: binding, additionalInterfaces: [{ transport: binding, url }] };
const client = await new sdk.ClientFactory({ transports: [factoryOf(binding, sdk)] }).createFromAgentCard(here);

const request = (prefix, fields = {}, configuration = { blocking: true }) => ({
  message: {
    kind: "message",
    messageId: newId(prefix),
    role: "user",
    parts: [{ kind: "text", text: "hello" }],
    ...fields,
  },
  configuration,
});
const text = (parts) => parts.map((part) => part.text).join("");

function told(event) {
  if (event.kind === "message") return ["message", text(event.parts)];
  if (event.kind === "artifact-update") return ["artifact", text(event.artifact.parts)];
  const kind = event.kind === "task" ? "task" : "status";
  return [kind, event.status.state + (event.final ? ", final" : "")];
}

async function sends() {
  const whole = await client.sendMessage(request("tck-complete-task"));
  const asked = await allOf(client.sendMessageStream(request("tck-input-required")), told);
  return {
    send: [whole.status.state, text(whole.status.message.parts)],
    message: told(await client.sendMessage(request("tck-message-response"))),
    stream: await allOf(client.sendMessageStream(request("tck-stream-artifact-chunked")), told),
    "stream of a question": asked.at(-1),
  };
}

async function asks() {
  const opened = await client.sendMessage(request("tck-input-required"));
  const working = () => client.sendMessage(request("test-resubscribe-message-id", {}, { blocking: false }));
  const { id } = pace === "buffered" ? await working() : opened;
  const subscription = client.resubscribeTask({ id });
  const first = told((await subscription.next()).value);
  const rest = allOf(subscription, told);
  const ended = await client.sendMessage(request("tck-complete-task", { taskId: opened.id }));
  const got = await client.getTask({ id: opened.id, historyLength: 1 });
  return {
    "at once": (await working()).status.state,
    asked: opened.status.state,
    subscription: [first, ...(await rest)],
    answered: ended.status.state,
    history: got.history.map((one) => one.role),
  };
}

async function pushes() {
  const config = { id: "mine", url: webhook, token: "a-token-of-the-client" };
  const opened = await client.sendMessage(
    request("tck-input-required", {}, { blocking: true, pushNotificationConfig: config }),
  );
  const other = { id: "other", url: "https://example.com/hook" };
  const set = await client.setTaskPushNotificationConfig({ taskId: opened.id, pushNotificationConfig: other });
  const got = await client.getTaskPushNotificationConfig({ id: opened.id, pushNotificationConfigId: "mine" });
  const canceled = await client.cancelTask({ id: opened.id });
  return {
    "task with a webhook": opened.id,
    set: set.pushNotificationConfig.id,
    webhook: got.pushNotificationConfig,
    cancel: canceled.status.state,
  };
}

async function refusals() {
  const { id } = await client.sendMessage(request("tck-complete-task"));
  return {
    "unknown task": await refused(() => client.getTask({ id: "nowhere" })),
    "cancel of an ended task": await refused(() => client.cancelTask({ id })),
    "subscription to an ended task": await refused(() => allOf(client.resubscribeTask({ id }), told)),
    "message to an ended task": await refused(() => client.sendMessage(request("x", { taskId: id }))),
  };
}

console.log(
  JSON.stringify({
    card: card.name,
    ...(await sends()),
    ...(await asks()),
    ...(await pushes()),
    refusals: await refusals(),
  }),
);
