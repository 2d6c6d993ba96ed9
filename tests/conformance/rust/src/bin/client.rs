//! The client of `a2a-protocol-client`. Knows nothing of ours.
//!
//! `client <agent's URL> <JSONRPC|HTTP+JSON> <webhook> <streamed|buffered>` prints one JSON object: what came of each
//! deed. A place that is `buffered` tells a stream when it has ended.

use std::error::Error;

use a2a_protocol_client::discovery::{CardFetchOptions, resolve_agent_card_with_options};
use a2a_protocol_client::jwks::fetch_jwks;
use a2a_protocol_client::{A2aClient, ClientBuilder, ClientError, EventStream};
use a2a_protocol_types::error::ErrorCode;
use a2a_protocol_types::events::StreamResponse;
use a2a_protocol_types::message::{Message, MessageRole, Part, PartContent};
use a2a_protocol_types::params::{
    ListPushConfigsParams, ListTasksParams, MessageSendParams, SendMessageConfiguration, TaskQueryParams,
};
use a2a_protocol_types::push::TaskPushNotificationConfig;
use a2a_protocol_types::responses::SendMessageResponse;
use a2a_protocol_types::task::{Task, TaskState};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn about(prefix: &str) -> MessageSendParams {
    let id = format!("{prefix}-{}", Uuid::new_v4());
    MessageSendParams::new(Message::new(id, MessageRole::User, vec![Part::text("hello")]))
}

fn about_task(prefix: &str, task: &str) -> MessageSendParams {
    let mut params = about(prefix);
    params.message = params.message.with_task_id(task);
    params
}

fn at_once(prefix: &str) -> MessageSendParams {
    let configuration = SendMessageConfiguration { return_immediately: Some(true), ..Default::default() };
    about(prefix).with_configuration(configuration)
}

fn text(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::text_content).collect()
}

/// What a stream's event is, in two words.
fn told(event: StreamResponse) -> Value {
    match event {
        StreamResponse::Task(task) => json!(["task", task.status.state.to_string()]),
        StreamResponse::StatusUpdate(one) => json!(["status_update", one.status.state.to_string()]),
        StreamResponse::ArtifactUpdate(one) => json!(["artifact_update", text(&one.artifact.parts)]),
        StreamResponse::Message(one) => json!(["message", text(&one.parts)]),
        _ => json!(["unknown", ""]),
    }
}

async fn all_of(mut events: EventStream) -> Result<Vec<Value>, ClientError> {
    let mut seen = vec![];
    while let Some(event) = events.next().await {
        seen.push(told(event?));
    }
    Ok(seen)
}

/// How a refusal is known: by its class, or by the text that is shown.
fn refused<T>(outcome: Result<T, ClientError>) -> String {
    match outcome {
        Ok(_) => "served".into(),
        Err(ClientError::Protocol(error)) => match error.code {
            ErrorCode::TaskNotFound => "TaskNotFoundError".into(),
            ErrorCode::TaskNotCancelable => "TaskNotCancelableError".into(),
            ErrorCode::UnsupportedOperation => "UnsupportedOperationError".into(),
            code => format!("{code:?}"),
        },
        Err(error) => error.to_string(),
    }
}

async fn send(client: &A2aClient, params: MessageSendParams) -> Outcome<Task> {
    match client.send_message(params).await? {
        SendMessageResponse::Task(task) => Ok(task),
        other => Err(format!("{other:?}").into()),
    }
}

async fn sends(client: &A2aClient) -> Outcome<Value> {
    let whole = send(client, about("tck-complete-task")).await?;
    let SendMessageResponse::Message(said) = client.send_message(about("tck-message-response")).await? else {
        return Err("no message".into());
    };
    let file = send(client, about("tck-artifact-file")).await?;
    let PartContent::Raw(raw) = file.artifacts.unwrap_or_default()[0].parts[0].content.clone() else {
        return Err("no file".into());
    };
    Ok(json!({
        "send": [whole.status.state.to_string(), whole.status.message.map(|one| text(&one.parts))],
        "message": text(&said.parts),
        "at once": send(client, at_once("tck-input-required")).await?.status.state.to_string(),
        "file": raw,
        "stream": all_of(client.stream_message(about("tck-stream-artifact-chunked")).await?).await?,
        "stream of a message": all_of(client.stream_message(about("tck-message-response")).await?).await?,
    }))
}

async fn asks(client: &A2aClient, buffered: bool) -> Outcome<Value> {
    let opened = send(client, about("tck-input-required")).await?.id.to_string();
    let subscription = if buffered {
        let working = send(client, at_once("test-resubscribe-message-id")).await?;
        let seen = all_of(client.subscribe_to_task(working.id.to_string()).await?).await?;
        send(client, about_task("tck-complete-task", &opened)).await?;
        seen
    } else {
        let mut events = client.subscribe_to_task(opened.as_str()).await?;
        let mut seen = vec![told(events.next().await.ok_or("no event")??)];
        send(client, about_task("tck-complete-task", &opened)).await?;
        seen.extend(all_of(events).await?);
        seen
    };
    let mut query = TaskQueryParams::new(opened.as_str());
    query.history_length = Some(1);
    let history = client.get_task(query).await?.history.unwrap_or_default();
    let is_ours = history.len() == 1 && history[0].role == MessageRole::User;
    Ok(json!({"subscription": subscription, "history": is_ours}))
}

async fn lists(client: &A2aClient) -> Outcome<Value> {
    let context = Uuid::new_v4().to_string();
    for prefix in ["tck-complete-task", "tck-reject-task", "tck-input-required"] {
        let mut params = about(prefix);
        params.message = params.message.with_context_id(context.as_str());
        send(client, params).await?;
    }
    let page = ListTasksParams { context_id: Some(context.clone()), page_size: Some(2), ..Default::default() };
    let first = client.list_tasks(page.clone()).await?;
    let next = ListTasksParams { page_token: Some(first.next_page_token.clone()), ..page };
    let second = client.list_tasks(next).await?;
    let waiting = ListTasksParams {
        context_id: Some(context), status: Some(TaskState::InputRequired), ..Default::default()
    };
    let waiting = client.list_tasks(waiting).await?.tasks;
    let states: Vec<_> = first.tasks.iter().chain(&second.tasks).map(|one| one.status.state.to_string()).collect();
    Ok(json!({
        "list": states,
        "total": first.total_size,
        "waiting": waiting.len(),
        "cancel": client.cancel_task(waiting[0].id.to_string()).await?.status.state.to_string(),
    }))
}

async fn pushes(client: &A2aClient, webhook: &str) -> Outcome<Value> {
    let mut config = TaskPushNotificationConfig::new("", webhook);
    (config.id, config.task_id) = (Some("mine".into()), None);
    config.token = Some("a-token-of-the-client".into());
    let configuration =
        SendMessageConfiguration { task_push_notification_config: Some(config), ..Default::default() };
    let id = send(client, about("tck-input-required").with_configuration(configuration)).await?.id.to_string();
    let other = TaskPushNotificationConfig::new(id.as_str(), "https://example.com/hook");
    let created = client.set_push_config(other).await?.id.ok_or("no id")?;
    let got = client.get_push_config(id.as_str(), "mine").await?;
    let all = || ListPushConfigsParams { task_id: id.clone(), page_size: None, page_token: None, tenant: None };
    let listed = client.list_push_configs(all()).await?.configs.len();
    client.delete_push_config(id.as_str(), created).await?;
    let left: Vec<_> = client.list_push_configs(all()).await?.configs.into_iter().map(|one| one.id).collect();
    Ok(json!({"task with a webhook": id, "webhook": got, "webhooks": listed, "left": left}))
}

async fn refusals(client: &A2aClient) -> Outcome<Value> {
    let ended = send(client, about("tck-complete-task")).await?.id.to_string();
    let subscription = match client.subscribe_to_task(ended.as_str()).await {
        Ok(events) => all_of(events).await.map(|_| ()),
        Err(error) => Err(error),
    };
    Ok(json!({
        "unknown task": refused(client.get_task(TaskQueryParams::new("nowhere")).await),
        "cancel of an ended task": refused(client.cancel_task(ended.as_str()).await),
        "subscription to an ended task": refused(subscription),
        "message to an ended task": refused(client.send_message(about_task("x", &ended)).await),
        "extended card": refused(client.get_extended_agent_card().await),
    }))
}

/// The card as it was served.
async fn document(url: &str) -> Outcome<Bytes> {
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.get(format!("{url}/.well-known/agent-card.json").parse()?).await?;
    Ok(answer.into_body().collect().await?.to_bytes())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let [url, binding, webhook, pace]: [String; 4] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "four arguments")?;
    let (base, _) = url.rsplit_once('/').ok_or("no agent")?;
    let keys = fetch_jwks(&format!("{base}/.well-known/jwks.json"), &CardFetchOptions::default()).await?;
    let verified = CardFetchOptions::default().with_signature_keys(keys.clone()).with_require_signature(true);
    let mut card = resolve_agent_card_with_options(&url, &verified).await?;
    let served = document(&url).await?;
    ClientBuilder::from_signed_card(&served, keys.clone())?;
    let altered = String::from_utf8(served.to_vec())?.replace(&card.name, "Another agent");
    let is_refused = ClientBuilder::from_signed_card(altered.as_bytes(), keys).is_err();
    for interface in &mut card.supported_interfaces {
        interface.url.clone_from(&url);
    }
    let client = ClientBuilder::from_card_preferring(&card, &[binding])?.build()?;
    let mut all = json!({
        "card": {"name": card.name, "altered": if is_refused { "refused" } else { "accepted" }},
        "refusals": refusals(&client).await?,
    });
    let deeds =
        [sends(&client).await?, asks(&client, pace == "buffered").await?, lists(&client).await?, pushes(&client, &webhook).await?];
    for some in deeds {
        for (name, came) in some.as_object().ok_or("no deeds")? {
            all[name] = came.clone();
        }
    }
    println!("{all}");
    Ok(())
}
