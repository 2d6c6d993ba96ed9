/** A state of a task, spelled as in A2A 0.3. */
export type TaskState =
  | "submitted" | "working" | "input-required" | "auth-required" | "completed" | "failed" | "canceled" | "rejected";

/** The claims of the signed token. `iat` and `exp` are seconds since the epoch. */
export interface Claims {
  iss: string;
  aud: string;
  iat: number;
  exp: number;
  jti: string;
  sub: string;
  taskId: string;
  configId: string;
  notificationId: string;
  eventNumber: number;
  request_body_sha256: string;
  [name: string]: unknown;
}

/** A genuine notification. `body` is a `StreamResponse` (version 1.0) or a `Task` (0.3), as it was received. */
export interface Notification {
  type: "notification";
  taskId: string;
  configId: string;
  notificationId: string;
  eventNumber: number;
  version: "1.0" | "0.3";
  kind: "task" | "message" | "statusUpdate" | "artifactUpdate";
  state: TaskState | undefined;
  claims: Claims;
  body: Record<string, any>;
}

/** A genuine question whether the webhook wants notifications: the answer is the text. */
export interface Challenge {
  type: "challenge";
  challenge: string;
}

/** What the receiver accepts, until `expires` (milliseconds since the epoch): of one task, or of every task. */
export interface Expectation {
  taskId?: string;
  token?: string;
  /** The whole value of the header, if the webhook is registered with credentials. */
  authorization?: string;
  expires: number;
}

/** `taskId` is undefined for a challenge, for which any expectation will do. */
export type Expectations = Expectation[] | ((taskId?: string) => Expectation[] | Promise<Expectation[]>);

/** A claim on a notification, until `claim` (milliseconds since the epoch). `late`: a later event came before it. */
export interface Admitted {
  late: boolean;
  claim: number;
}

/** The memory of handled notifications, which all processes of the receiver share. */
export interface ReplayStore {
  /**
   * Claims a notification for one attempt, in one transaction; null if it was handled before. Throws StillWorking while
   * another attempt has the claim, and Refused with the code `replayed` for a `jti` that came with other content.
   */
  admit(claims: Claims, now: number): Admitted | null | Promise<Admitted | null>;
  /** Marks a claimed notification as handled, if the claim is still this one. */
  settle(claims: Claims, admitted: Admitted): void | Promise<void>;
  /** Gives the claim back, if it is still this one: the next attempt may handle the notification. */
  release(claims: Claims, admitted: Admitted): void | Promise<void>;
}

export interface Options {
  /** Base URL of the deployment that signs. */
  issuer: string;
  /** The webhook's URL, exactly as it is registered. */
  audience: string;
  /** Gets each genuine notification at least once. If it throws, the sender's next attempt calls it again. */
  handle(notification: Notification & { late: boolean }): unknown;
  /** The token of every task. Without it, `expectations` must be set. */
  token?: string;
  expectations?: Expectations;
  /** The issuer's keys; by default `{issuer}/.well-known/jwks.json`. */
  jwksUrl?: string;
  /** Fetches the raw key set, within a deadline of its own; by default from `jwksUrl`. */
  fetchKeys?(): Promise<Uint8Array>;
  /** By default `makeMemory()`: run one process. */
  store?: ReplayStore;
  /** Milliseconds since the epoch. */
  clock?(): number;
  /** The longest body in bytes; by default 1 MiB. */
  maxBytes?: number;
  /** The longest time in milliseconds for a body to arrive; by default 10 seconds. */
  bodyMs?: number;
}

export interface WebhookRequest {
  method?: string;
  /** All of them, duplicates too. */
  headers: [string, string][];
  /** The raw bytes, or a stream of them. */
  body: Uint8Array | AsyncIterable<Uint8Array> | null;
}

export interface WebhookAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

export interface Receiver {
  /** Answers a request; it never throws. `waitUntil` keeps the process running for a promise. */
  receive(request: WebhookRequest, waitUntil?: (promise: Promise<unknown>) => void): Promise<WebhookAnswer>;
  /** The same for Request and Response: Deno, Cloudflare Workers, Hono. */
  fetch(request: Request, environment?: unknown, context?: unknown): Promise<Response>;
}

/** Throws TypeError if an option is missing. */
export function makeReceiver(options: Options): Receiver;

/** A request that must have no effect. `code` names the rule that it breaks; do not send it to the sender. */
export class Refused extends Error {
  constructor(code: string, message?: string, reason?: string);
  readonly code: string;
  /** Names the sentence of the log. */
  readonly reason: string;
  /** Those of an authentic request. */
  readonly claims?: Claims;
}

/** Another attempt is being handled. `retryAfter` is in seconds. */
export class StillWorking extends Refused {
  constructor(retryAfter: number);
  readonly retryAfter: number;
}

/** The issuer's keys cannot be fetched now. `retryAfter` is in seconds. */
export class KeysUnavailable extends Refused {
  constructor(retryAfter: number);
  readonly retryAfter: number;
}

/** The memory of one process. The oldest entries are dropped beyond `limit` (by default 100,000). */
export function makeMemory(limit?: number): ReplayStore;

/** Keys of Web Crypto by key id. (Its type has no name in every set of types.) */
export type Keys = Map<string, object>;

/** The keys for a key id at `now` (milliseconds since the epoch). Throws KeysUnavailable. */
export function makeCache(
  fetchKeys: () => Promise<Uint8Array>,
): (kid: string, now: number, waitUntil?: (promise: Promise<unknown>) => void) => Promise<Keys>;

/** The usable keys of a JWK set, by key id. Throws if there is no usable key, or if the set is ambiguous or too large. */
export function parseKeys(raw: Uint8Array): Promise<Keys>;

/** Verifies that a request is genuine, without a memory of others. Throws Refused. */
export function verify(request: {
  headers: [string, string][];
  body: Uint8Array;
  keys: Keys;
  now: number;
  issuer: string;
  audience: string;
  expectations: Expectations;
}): Promise<Notification | Challenge>;
