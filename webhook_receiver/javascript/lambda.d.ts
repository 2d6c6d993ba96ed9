import type { Receiver } from "./index.js";

/** An event of API Gateway (both versions) or of a function URL. */
export interface WebhookEvent {
  body?: string | null;
  isBase64Encoded?: boolean;
  headers?: Record<string, string | undefined> | null;
  multiValueHeaders?: Record<string, string[] | undefined> | null;
  httpMethod?: string;
  requestContext?: { http?: { method?: string } };
}

export interface WebhookResult {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}

/** The function's handler. */
export function toHandler(receiver: Receiver): (event: WebhookEvent) => Promise<WebhookResult>;
