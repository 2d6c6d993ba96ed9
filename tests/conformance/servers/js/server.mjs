// An agent on the official JavaScript SDK for A2A 1.0, which does what the first word of a message asks for.
//
// `node server.mjs <binding> [push]` prints its base URL. `GET /ran` lists the texts of its executions.
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultPushNotificationSender,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import express from "express";
import { randomUUID } from "node:crypto";

const ran = [];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Scripted {
  canceled = new Set();

  async execute(context, bus) {
    const message = Message.toJSON(context.userMessage);
    const asked = message.parts[0].text ?? "";
    ran.push(asked);
    const [word, ...more] = asked.split(" ");
    const rest = more.join(" ");
    const ids = { taskId: context.taskId, contextId: context.contextId };
    const said = (text, fields = {}) => ({
      messageId: randomUUID(), role: "ROLE_AGENT", parts: [{ text }, ...(fields.parts ?? [])], ...ids, metadata: fields.metadata,
    });
    const status = (state, inner) => {
      const event = { ...ids, status: { state: `TASK_STATE_${state}`, message: inner, timestamp: new Date().toISOString() } };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(event)));
    };
    const emit = (artifact, append = false, lastChunk = true) => {
      const event = { ...ids, artifact: { artifactId: randomUUID(), ...artifact }, append, lastChunk };
      bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(event)));
    };
    if (word === "message") {
      bus.publish(AgentEvent.message(Message.fromJSON({ messageId: "said", role: "ROLE_AGENT", parts: [{ text: `Hello, ${rest}` }] })));
      bus.finished();
      return;
    }
    if (context.task) {
      bus.publish(AgentEvent.task(context.task)); // a stream begins with a task
      emit({ name: "same", parts: [{ text: `${ids.taskId} ${ids.contextId}` }] });
      status("COMPLETED", said(JSON.stringify(message.metadata ?? {}).replaceAll('":"', '": "')));
      bus.finished();
      return;
    }
    const begun = { id: ids.taskId, contextId: ids.contextId, status: { state: "TASK_STATE_SUBMITTED" }, history: [message] };
    bus.publish(AgentEvent.task(Task.fromJSON(begun)));
    status("WORKING");
    switch (word) {
      case "stream":
        status("WORKING", said("Counting"));
        for (let number = 0; number < Number(rest); number += 1) {
          await pause(20);
          const last = number === Number(rest) - 1;
          emit({ artifactId: "lines", name: "lines.txt", parts: [{ text: `${number}\n` }] }, number > 0, last);
        }
        status("COMPLETED", said("Counted"));
        break;
      case "ask":
        status("INPUT_REQUIRED", said("Which colour?", { parts: [{ data: { n: 1 } }], metadata: { form: "colours" } }));
        break;
      case "auth":
        status("AUTH_REQUIRED", said("Sign in"));
        break;
      case "fail":
        status("FAILED", said(rest));
        break;
      case "reject":
        status("REJECTED", said(rest));
        break;
      case "kinds":
        emit({ name: "copy", parts: message.parts, metadata: { seen: message.metadata } });
        status("COMPLETED");
        break;
      case "slow":
        status("WORKING", said("Digging"));
        while (!this.canceled.has(ids.taskId)) await pause(50);
        status("CANCELED");
        break;
      case "hang":
        await pause(Number(rest) * 1000);
        emit({ name: "late.txt", parts: [{ text: "late" }] });
        status("COMPLETED");
        break;
      default:
        throw new Error("ZeroDivisionError");
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    ran.push("cancel");
    this.canceled.add(taskId);
  }
}

const [binding, ...options] = process.argv.slice(2);
const app = express();
const server = app.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const card = AgentCard.fromJSON({
    name: "Scripted",
    description: "Does what it is told",
    version: "1",
    capabilities: { streaming: !options.includes("silent"), pushNotifications: options.includes("push") },
    supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: "1.0" }],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "do", name: "Do", description: "Does it", tags: ["test"] }],
  });
  const store = new InMemoryPushNotificationStore();
  const push = options.includes("push") ? [undefined, store, new DefaultPushNotificationSender(store)] : [];
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Scripted(), ...push);
  const users = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.get("/ran", (_, answer) => answer.json(ran));
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use(binding === "JSONRPC" ? jsonRpcHandler(users) : restHandler(users));
  console.log(url);
});
