// What the clients of both versions of the official JavaScript SDK share.
import { randomUUID } from "node:crypto";

/** A client of the transport of a binding. The card says where users find the agent; `url` is where a test put it. */
export const factoryOf = (binding, { JsonRpcTransportFactory, RestTransportFactory }) =>
  binding === "JSONRPC" ? new JsonRpcTransportFactory() : new RestTransportFactory();

export const newId = (prefix) => `${prefix}-${randomUUID()}`;

/** What `told` says of each event, to the end of the stream. */
export async function allOf(events, told) {
  const seen = [];
  for await (const event of events) seen.push(told(event));
  return seen;
}

/** The class of the error that a deed raises. */
export async function refused(deed) {
  try {
    await deed();
    return "served";
  } catch (error) {
    // A refusal inside a JSON-RPC stream has no class of its own in this SDK: it says the code in its text.
    return error.name === "Error" ? `Error ${/Code: -\d+/.exec(error.message)}` : error.name;
  }
}
