//! An agent on `a2a-protocol-server`, which does what the first word of a message asks for.
//!
//! `server <binding> [push] [silent]` prints its base URL. `GET /ran` lists the texts of its executions.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_protocol_server::push::HttpPushSender;
use a2a_protocol_server::serve::DispatchResponse;
use a2a_protocol_server::{
    Dispatcher, EventEmitter, JsonRpcDispatcher, RequestHandler, RequestHandlerBuilder, RestDispatcher, Server,
    agent_executor,
};
use a2a_protocol_types::agent_card::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill};
use a2a_protocol_types::artifact::Artifact;
use a2a_protocol_types::error::A2aResult;
use a2a_protocol_types::events::{StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
use a2a_protocol_types::message::{Message, Part};
use a2a_protocol_types::task::{ContextId, TaskState, TaskStatus};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use uuid::Uuid;

static RAN: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Scripted;

async fn say(emit: &EventEmitter<'_>, state: TaskState, parts: Vec<Part>, metadata: Option<Value>) -> A2aResult<()> {
    let context = ContextId::new(emit.ctx.context_id.clone());
    let mut status = TaskStatus::with_timestamp(state);
    let mut message = Message::agent(Uuid::new_v4().to_string(), parts)
        .with_task_id(emit.ctx.task_id.clone())
        .with_context_id(context.clone());
    message.metadata = metadata;
    status.message = (!message.parts.is_empty()).then_some(message);
    let event = TaskStatusUpdateEvent { task_id: emit.ctx.task_id.clone(), context_id: context, status, metadata: None };
    emit.queue.write(StreamResponse::StatusUpdate(event)).await
}

async fn artifact(emit: &EventEmitter<'_>, name: &str, parts: Vec<Part>, metadata: Option<Value>) -> A2aResult<()> {
    let mut made = Artifact::new(Uuid::new_v4().to_string(), parts);
    (made.name, made.metadata) = (Some(name.into()), metadata);
    write(emit, made, false, true).await
}

async fn write(emit: &EventEmitter<'_>, artifact: Artifact, append: bool, last: bool) -> A2aResult<()> {
    let event = TaskArtifactUpdateEvent {
        task_id: emit.ctx.task_id.clone(),
        context_id: ContextId::new(emit.ctx.context_id.clone()),
        artifact,
        append: Some(append),
        last_chunk: Some(last),
        metadata: None,
    };
    emit.queue.write(StreamResponse::ArtifactUpdate(event)).await
}

fn text(content: &str) -> Vec<Part> {
    vec![Part::text(content)]
}

async fn execute(emit: &EventEmitter<'_>) -> A2aResult<()> {
    let message = &emit.ctx.message;
    let asked = message.text().unwrap_or_default();
    RAN.lock().unwrap().push(asked.into());
    let (word, rest) = asked.split_once(' ').unwrap_or((asked, ""));
    if word == "message" {
        return emit.queue.write(StreamResponse::Message(Message::agent_text("said", format!("Hello, {rest}")))).await;
    }
    if emit.ctx.stored_task.as_ref().is_some_and(|task| task.id == emit.ctx.task_id) {
        artifact(emit, "same", text(&format!("{} {}", emit.ctx.task_id, emit.ctx.context_id)), None).await?;
        let metadata = message.metadata.clone().unwrap_or(json!({})).to_string().replace("\":\"", "\": \"");
        return say(emit, TaskState::Completed, text(&metadata), None).await;
    }
    say(emit, TaskState::Working, vec![], None).await?;
    match word {
        "stream" => {
            say(emit, TaskState::Working, text("Counting"), None).await?;
            let count: usize = rest.parse().unwrap_or_default();
            for number in 0..count {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let mut chunk = Artifact::new("lines", text(&format!("{number}\n")));
                chunk.name = Some("lines.txt".into());
                write(emit, chunk, number > 0, number == count - 1).await?;
            }
            say(emit, TaskState::Completed, text("Counted"), None).await
        }
        "ask" => {
            let parts = vec![Part::text("Which colour?"), Part::data(json!({"n": 1}))];
            say(emit, TaskState::InputRequired, parts, Some(json!({"form": "colours"}))).await
        }
        "auth" => say(emit, TaskState::AuthRequired, text("Sign in"), None).await,
        "fail" => say(emit, TaskState::Failed, text(rest), None).await,
        "reject" => say(emit, TaskState::Rejected, text(rest), None).await,
        "kinds" => {
            artifact(emit, "copy", message.parts.clone(), Some(json!({"seen": message.metadata}))).await?;
            say(emit, TaskState::Completed, vec![], None).await
        }
        "slow" => {
            say(emit, TaskState::Working, text("Digging"), None).await?;
            emit.ctx.cancellation_token.cancelled().await;
            Ok(())
        }
        "hang" => {
            tokio::time::sleep(Duration::from_secs_f64(rest.parse().unwrap_or_default())).await;
            artifact(emit, "late.txt", text("late"), None).await?;
            say(emit, TaskState::Completed, vec![], None).await
        }
        _ => say(emit, TaskState::Failed, text("ZeroDivisionError"), None).await,
    }
}

agent_executor!(Scripted,
    execute: |ctx, queue| async { execute(&EventEmitter::new(ctx, queue)).await },
    cancel: |ctx, queue| async {
        RAN.lock().unwrap().push("cancel".into());
        say(&EventEmitter::new(ctx, queue), TaskState::Canceled, vec![], None).await
    }
);

/// The agent, and what it has executed.
struct Routes(Box<dyn Dispatcher>);

impl Dispatcher for Routes {
    fn dispatch(
        &self,
        request: hyper::Request<hyper::body::Incoming>,
    ) -> Pin<Box<dyn Future<Output = DispatchResponse> + Send + '_>> {
        if request.uri().path() != "/ran" {
            return self.0.dispatch(request);
        }
        let ran = json!(*RAN.lock().unwrap()).to_string();
        let body = Full::new(Bytes::from(ran)).map_err(|never: Infallible| match never {});
        Box::pin(async { hyper::Response::new(body.boxed()) })
    }

    fn request_handler(&self) -> Option<&Arc<RequestHandler>> {
        self.0.request_handler()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let has = |option: &str| options[1..].iter().any(|one| one == option);
    let server = Server::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", server.local_addr()?);
    let is_rpc = options[0] == "JSONRPC";
    let interface = if is_rpc { AgentInterface::jsonrpc(&url) } else { AgentInterface::rest(&url) };
    let capabilities = AgentCapabilities::none().with_streaming(!has("silent")).with_push_notifications(has("push"));
    let card = AgentCard::new("Scripted", "1", interface)
        .with_description("Does what it is told")
        .with_capabilities(capabilities)
        .with_input_modes(["text/plain", "application/json", "image/png"])
        .with_skill(AgentSkill::new("do", "Do", "Does it").with_tags(["test"]));
    let mut builder = RequestHandlerBuilder::new(Scripted).with_agent_card(card);
    if has("push") {
        builder = builder.with_push_sender(HttpPushSender::new().allow_private_urls());
    }
    let handler = Arc::new(builder.build()?);
    let dispatcher: Box<dyn Dispatcher> =
        if is_rpc { Box::new(JsonRpcDispatcher::new(handler)) } else { Box::new(RestDispatcher::new(handler)) };
    println!("{url}");
    server.serve_with_shutdown(Routes(dispatcher), std::future::pending()).await;
    Ok(())
}
