// The official Java SDK for A2A 0.3 as a client. Knows nothing of ours.
// `Client <agent's URL> <JSONRPC|HTTP+JSON> <webhook> <streamed|buffered>` prints one JSON object: what came of each deed.
// A place that is `buffered` tells a stream when it has ended.

import com.google.gson.Gson;
import io.a2a.client.ClientEvent;
import io.a2a.client.MessageEvent;
import io.a2a.client.TaskEvent;
import io.a2a.client.TaskUpdateEvent;
import io.a2a.client.config.ClientConfig;
import io.a2a.client.http.A2ACardResolver;
import io.a2a.client.http.JdkA2AHttpClient;
import io.a2a.client.transport.jsonrpc.JSONRPCTransport;
import io.a2a.client.transport.jsonrpc.JSONRPCTransportConfig;
import io.a2a.client.transport.rest.RestTransport;
import io.a2a.client.transport.rest.RestTransportConfig;
import io.a2a.spec.AgentCard;
import io.a2a.spec.AgentInterface;
import io.a2a.spec.GetTaskPushNotificationConfigParams;
import io.a2a.spec.Message;
import io.a2a.spec.Part;
import io.a2a.spec.PushNotificationConfig;
import io.a2a.spec.Task;
import io.a2a.spec.TaskArtifactUpdateEvent;
import io.a2a.spec.TaskIdParams;
import io.a2a.spec.TaskPushNotificationConfig;
import io.a2a.spec.TaskQueryParams;
import io.a2a.spec.TaskStatusUpdateEvent;
import io.a2a.spec.TextPart;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

public final class Client {
    private static final String CARD = ".well-known/agent-card.json";
    private static final int PATIENCE_S = 40;

    private final AgentCard card;
    private final String binding;
    private final io.a2a.client.Client streaming;
    private final io.a2a.client.Client asking;

    private Client(AgentCard card, String binding) throws Exception {
        this.card = card;
        this.binding = binding;
        this.streaming = client(new ClientConfig.Builder().setStreaming(true));
        this.asking = client(new ClientConfig.Builder().setStreaming(false));
    }

    private io.a2a.client.Client client(ClientConfig.Builder config) throws Exception {
        var builder = io.a2a.client.Client.builder(card).clientConfig(config.build());
        return binding.equals("JSONRPC")
                ? builder.withTransport(JSONRPCTransport.class, new JSONRPCTransportConfig()).build()
                : builder.withTransport(RestTransport.class, new RestTransportConfig()).build();
    }

    public static void main(String[] given) throws Exception {
        // By itself this SDK looks for a card at the root of the host only.
        AgentCard found = new A2ACardResolver(new JdkA2AHttpClient(), given[0] + "/", CARD).getAgentCard();
        AgentInterface here = new AgentInterface(given[1], given[0]);
        AgentCard card = new AgentCard.Builder(found)
                .url(given[0])
                .preferredTransport(given[1])
                .additionalInterfaces(List.of(here))
                .build();
        Client client = new Client(card, given[1]);
        Map<String, Object> deeds = new LinkedHashMap<>();
        deeds.put("card", found.name());
        deeds.putAll(client.sends());
        deeds.putAll(client.asks(given[3].equals("buffered")));
        deeds.putAll(client.pushes(given[2]));
        deeds.put("refusals", client.refusals());
        System.out.println(new Gson().toJson(deeds));
        System.exit(0); // the SDK's HTTP client keeps threads
    }

    private static Message.Builder message(String prefix) {
        return new Message.Builder()
                .messageId(prefix + "-" + UUID.randomUUID())
                .role(Message.Role.USER)
                .parts(new TextPart("hello"));
    }

    private static String text(List<Part<?>> parts) {
        StringBuilder all = new StringBuilder();
        for (Part<?> part : parts) {
            if (part instanceof TextPart one) {
                all.append(one.getText());
            }
        }
        return all.toString();
    }

    private static String state(Task task) {
        return task.getStatus().state().asString();
    }

    /** What an event is, in two words. The SDK folds a stream: each comes with the task as it then is. */
    private static List<String> told(ClientEvent event) {
        if (event instanceof MessageEvent one) {
            return List.of("message", text(one.getMessage().getParts()));
        }
        if (event instanceof TaskEvent one) {
            return List.of("task", state(one.getTask()));
        }
        TaskUpdateEvent update = (TaskUpdateEvent) event;
        if (update.getUpdateEvent() instanceof TaskArtifactUpdateEvent one) {
            return List.of("artifact", text(one.getArtifact().parts()));
        }
        boolean last = ((TaskStatusUpdateEvent) update.getUpdateEvent()).isFinal();
        return List.of("status", state(update.getTask()) + (last ? ", final" : ""));
    }

    private static ClientEvent send(io.a2a.client.Client client, Message message) throws Exception {
        List<ClientEvent> seen = new ArrayList<>();
        client.sendMessage(message, List.of((event, card) -> seen.add(event)), null, null);
        return seen.get(0);
    }

    private Task task(Message message) throws Exception {
        return ((TaskEvent) send(asking, message)).getTask();
    }

    private interface Opening {
        void with(List<BiConsumer<ClientEvent, AgentCard>> consumers, Consumer<Throwable> failed) throws Exception;
    }

    /** What a stream tells until its last event, or until it says that it failed. */
    private static List<List<String>> all(Opening opening, Runnable meanwhile) throws Exception {
        BlockingQueue<Object> came = new LinkedBlockingQueue<>();
        opening.with(List.of((event, card) -> came.add(told(event))), failed -> came.add(failed == null ? "" : failed));
        List<List<String>> seen = new ArrayList<>();
        while (true) {
            Object next = came.poll(PATIENCE_S, TimeUnit.SECONDS);
            if (next instanceof Throwable failed) {
                throw new Exception(failed);
            }
            if (!(next instanceof List<?> event)) {
                return seen; // the stream has ended, or nothing came
            }
            seen.add(List.of((String) event.get(0), (String) event.get(1)));
            if (seen.size() == 1) {
                meanwhile.run();
            }
            if (event.get(0).equals("message") || ((String) event.get(1)).endsWith(", final")) {
                return seen;
            }
        }
    }

    private List<List<String>> streamed(String prefix) throws Exception {
        Message message = message(prefix).build();
        return all((consumers, failed) -> streaming.sendMessage(message, consumers, failed, null), () -> {});
    }

    private List<List<String>> subscribed(String id, Runnable meanwhile) throws Exception {
        TaskIdParams named = new TaskIdParams(id);
        return all((consumers, failed) -> streaming.resubscribe(named, consumers, failed, null), meanwhile);
    }

    private Map<String, Object> sends() throws Exception {
        Task whole = task(message("tck-complete-task").build());
        List<List<String>> asked = streamed("tck-input-required");
        return Map.of(
                "send", List.of(state(whole), text(whole.getStatus().message().getParts())),
                "message", told(send(asking, message("tck-message-response").build())),
                "stream", streamed("tck-stream-artifact-chunked"),
                "stream of a question", asked.get(asked.size() - 1));
    }

    private Map<String, Object> asks(boolean buffered) throws Exception {
        Task opened = task(message("tck-input-required").build());
        List<Task> ended = new ArrayList<>();
        Runnable answer = () -> {
            try {
                ended.add(task(message("tck-complete-task").taskId(opened.getId()).build()));
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        };
        List<List<String>> subscription;
        var polling = client(new ClientConfig.Builder().setStreaming(false).setPolling(true));
        Task working = ((TaskEvent) send(polling, message("test-resubscribe-message-id").build())).getTask();
        if (buffered) {
            subscription = subscribed(working.getId(), () -> {});
            answer.run();
        } else {
            subscription = subscribed(opened.getId(), answer);
        }
        // Over REST this SDK puts a space before the number, and no URL takes that.
        int one = binding.equals("JSONRPC") ? 1 : 0;
        List<String> history = new ArrayList<>();
        asking.getTask(new TaskQueryParams(opened.getId(), one))
                .getHistory()
                .forEach(message -> history.add(message.getRole().asString()));
        return Map.of(
                "at once", state(working),
                "asked", state(opened),
                "subscription", subscription,
                "answered", state(ended.get(0)),
                "history", history.subList(history.size() - 1, history.size()));
    }

    private Map<String, Object> pushes(String webhook) throws Exception {
        PushNotificationConfig config = new PushNotificationConfig.Builder()
                .id("mine")
                .url(webhook)
                .token("a-token-of-the-client")
                .build();
        PushNotificationConfig other = new PushNotificationConfig.Builder()
                .id("other")
                .url("https://example.com/hook")
                .build();
        var pushing = client(new ClientConfig.Builder().setStreaming(false).setPushNotificationConfig(config));
        Task opened = ((TaskEvent) send(pushing, message("tck-input-required").build())).getTask();
        var set = asking.setTaskPushNotificationConfiguration(new TaskPushNotificationConfig(opened.getId(), other));
        var got = asking.getTaskPushNotificationConfiguration(
                new GetTaskPushNotificationConfigParams(opened.getId(), "mine"));
        Task canceled = asking.cancelTask(new TaskIdParams(opened.getId()));
        return Map.of(
                "task with a webhook", opened.getId(),
                "set", set.pushNotificationConfig().id(),
                "webhook", Map.of("id", got.pushNotificationConfig().id()),
                "cancel", state(canceled));
    }

    private interface Deed {
        void dare() throws Exception;
    }

    /** How a refusal is known: by the class of its cause, and by its text. */
    private static String refused(Deed deed) {
        try {
            deed.dare();
            return "served";
        } catch (Throwable error) {
            return (error.getCause() == null ? error : error.getCause()).getClass().getSimpleName() + ": "
                    + error.getMessage();
        }
    }

    private Map<String, Object> refusals() throws Exception {
        String ended = task(message("tck-complete-task").build()).getId();
        return Map.of(
                "unknown task", refused(() -> asking.getTask(new TaskQueryParams("nowhere"))),
                "cancel of an ended task", refused(() -> asking.cancelTask(new TaskIdParams(ended))),
                "subscription to an ended task", refused(() -> subscribed(ended, () -> {})),
                "message to an ended task", refused(() -> task(message("x").taskId(ended).build())));
    }
}
