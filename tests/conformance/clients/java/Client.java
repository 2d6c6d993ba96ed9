// The official Java SDK as a client. Knows nothing of ours.
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
import io.a2a.client.transport.jsonrpc.JSONRPCTransportConfigBuilder;
import io.a2a.client.transport.rest.RestTransport;
import io.a2a.client.transport.rest.RestTransportConfigBuilder;
import io.a2a.client.transport.spi.interceptors.ClientCallContext;
import io.a2a.spec.AgentCapabilities;
import io.a2a.spec.AgentCard;
import io.a2a.spec.AgentInterface;
import io.a2a.spec.DeleteTaskPushNotificationConfigParams;
import io.a2a.spec.FilePart;
import io.a2a.spec.FileWithBytes;
import io.a2a.spec.GetTaskPushNotificationConfigParams;
import io.a2a.spec.ListTaskPushNotificationConfigParams;
import io.a2a.spec.ListTasksParams;
import io.a2a.spec.Message;
import io.a2a.spec.Part;
import io.a2a.spec.PushNotificationConfig;
import io.a2a.spec.Task;
import io.a2a.spec.TaskArtifactUpdateEvent;
import io.a2a.spec.TaskIdParams;
import io.a2a.spec.TaskPushNotificationConfig;
import io.a2a.spec.TaskQueryParams;
import io.a2a.spec.TaskState;
import io.a2a.spec.TextPart;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
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
    /** What each call carries: this SDK sends no version by itself. */
    private static final ClientCallContext CONTEXT = new ClientCallContext(Map.of(), Map.of("A2A-Version", "1.0"));
    private static final String CARD = ".well-known/agent-card.json";
    private static final int PATIENCE_S = 40;

    private final io.a2a.client.Client streaming;
    private final io.a2a.client.Client asking;
    private final String webhook;
    private final boolean rest;

    private Client(AgentCard card, String binding, String webhook) throws Exception {
        this.rest = !binding.equals("JSONRPC");
        this.streaming = client(card, binding, true);
        this.asking = client(card, binding, false);
        this.webhook = webhook;
    }

    private static io.a2a.client.Client client(AgentCard card, String binding, boolean streaming) throws Exception {
        var builder = io.a2a.client.Client.builder(card)
                .clientConfig(ClientConfig.builder().setStreaming(streaming).build());
        return binding.equals("JSONRPC")
                ? builder.withTransport(JSONRPCTransport.class, new JSONRPCTransportConfigBuilder()).build()
                : builder.withTransport(RestTransport.class, new RestTransportConfigBuilder()).build();
    }

    public static void main(String[] given) throws Exception {
        Client client = new Client(byHand(given[0], given[1]), given[1], given[2]);
        Map<String, Object> deeds = new LinkedHashMap<>();
        deeds.put("card", refused(() -> new A2ACardResolver(new JdkA2AHttpClient(), given[0] + "/", "", CARD).getAgentCard()));
        deeds.putAll(client.sends());
        deeds.putAll(client.asks(given[3].equals("buffered")));
        deeds.putAll(client.lists());
        deeds.put("webhooks", client.pushes());
        deeds.put("refusals", client.refusals());
        System.out.println(new Gson().toJson(deeds));
        System.exit(0); // the SDK's HTTP client keeps threads
    }

    /** A card with what this SDK looks at: it cannot read ours, which has members of 0.3 besides. */
    private static AgentCard byHand(String url, String binding) {
        return AgentCard.builder()
                .name("By hand")
                .description("What this client looks at.")
                .version("1")
                .capabilities(new AgentCapabilities(true, true, false, List.of()))
                .defaultInputModes(List.of("text/plain"))
                .defaultOutputModes(List.of("text/plain"))
                .skills(List.of())
                .supportedInterfaces(List.of(new AgentInterface(binding, url, "", "1.0")))
                .build();
    }

    private static Message.Builder message(String prefix) {
        return Message.builder()
                .messageId(prefix + "-" + UUID.randomUUID())
                .role(Message.Role.ROLE_USER)
                .parts(new TextPart("hello"));
    }

    private static String text(List<Part<?>> parts) {
        StringBuilder all = new StringBuilder();
        for (Part<?> part : parts) {
            if (part instanceof TextPart one) {
                all.append(one.text());
            }
        }
        return all.toString();
    }

    /** What an event is, in two words. */
    private static List<String> told(ClientEvent event) {
        if (event instanceof MessageEvent one) {
            return List.of("message", text(one.getMessage().parts()));
        }
        if (event instanceof TaskEvent one) {
            return List.of("task", one.getTask().status().state().name());
        }
        TaskUpdateEvent update = (TaskUpdateEvent) event;
        if (update.getUpdateEvent() instanceof TaskArtifactUpdateEvent one) {
            return List.of("artifact_update", text(one.artifact().parts()));
        }
        return List.of("status_update", update.getTask().status().state().name());
    }

    private ClientEvent send(Message message) throws Exception {
        List<ClientEvent> seen = new ArrayList<>();
        asking.sendMessage(message, List.of((event, card) -> seen.add(event)), null, CONTEXT);
        return seen.get(0);
    }

    private Task task(Message message) throws Exception {
        return ((TaskEvent) send(message)).getTask();
    }

    private interface Opening {
        void with(List<BiConsumer<ClientEvent, AgentCard>> consumers, Consumer<Throwable> failed) throws Exception;
    }

    /** What a stream tells until the task has ended or a message has come, or until it says that it failed. */
    private static List<List<String>> all(Opening opening, Runnable meanwhile) throws Exception {
        BlockingQueue<Object> came = new LinkedBlockingQueue<>();
        opening.with(List.of((event, card) -> came.add(told(event))), failed -> came.add(failed == null ? "" : failed));
        List<List<String>> seen = new ArrayList<>();
        while (true) {
            Object next = came.poll(PATIENCE_S, TimeUnit.SECONDS);
            if (next instanceof Exception failed) {
                throw failed;
            }
            if (!(next instanceof List<?> event)) {
                return seen; // the stream has ended, or nothing came
            }
            seen.add(List.of((String) event.get(0), (String) event.get(1)));
            if (seen.size() == 1) {
                meanwhile.run();
            }
            if (event.get(0).equals("message") || event.get(1).equals("TASK_STATE_COMPLETED")) {
                return seen;
            }
        }
    }

    private List<List<String>> streamed(String prefix) throws Exception {
        Message message = message(prefix).build();
        return all((consumers, failed) -> streaming.sendMessage(message, consumers, failed, CONTEXT), () -> {});
    }

    private List<List<String>> subscribed(String id, Runnable meanwhile) throws Exception {
        TaskIdParams named = new TaskIdParams(id);
        return all((consumers, failed) -> streaming.subscribeToTask(named, consumers, failed, CONTEXT), meanwhile);
    }

    private Map<String, Object> sends() throws Exception {
        Task whole = task(message("tck-complete-task").build());
        Task file = task(message("tck-artifact-file").build());
        FilePart part = (FilePart) file.artifacts().get(0).parts().get(0);
        return Map.of(
                "send", List.of(whole.status().state().name(), text(whole.status().message().parts())),
                "message", told(send(message("tck-message-response").build())).get(1),
                "file", new String(Base64.getDecoder().decode(((FileWithBytes) part.file()).bytes())),
                "stream", streamed("tck-stream-artifact-chunked"),
                "stream of a message", streamed("tck-message-response"));
    }

    private Map<String, Object> asks(boolean buffered) throws Exception {
        Task opened = task(message("tck-input-required").build());
        List<Task> ended = new ArrayList<>();
        Runnable answer = () -> {
            try {
                ended.add(task(message("tck-complete-task").taskId(opened.id()).build()));
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        };
        List<List<String>> subscription;
        if (buffered) { // no task to wait for: this SDK's way to say "at once" is from before 1.0
            answer.run();
            subscription = List.of();
        } else {
            subscription = subscribed(opened.id(), answer);
        }
        // Over REST this SDK puts a space before the number, and no URL takes that.
        Integer one = rest ? null : 1;
        Task got = asking.getTask(new TaskQueryParams(opened.id(), one), CONTEXT);
        return Map.of(
                "asked", List.of("task", opened.status().state().name()),
                "subscription", subscription,
                "answered", List.of("task", ended.get(0).status().state().name()),
                "history", rest || got.history().size() == 1);
    }

    private Map<String, Object> lists() throws Exception {
        String context = UUID.randomUUID().toString();
        for (String prefix : List.of("tck-complete-task", "tck-reject-task", "tck-input-required")) {
            send(message(prefix).contextId(context).build());
        }
        // This SDK wants pageSize to be the number of tasks on the page, so that only full pages can be read.
        ListTasksParams.Builder asked = ListTasksParams.builder().contextId(context).tenant("").pageSize(1);
        List<String> states = new ArrayList<>();
        int total = 0;
        String next = "";
        do {
            var page = asking.listTasks(next.isEmpty() ? asked.build() : asked.pageToken(next).build(), CONTEXT);
            page.tasks().forEach(task -> states.add(task.status().state().name()));
            total = next.isEmpty() ? page.totalSize() : total;
            next = page.nextPageToken() == null ? "" : page.nextPageToken();
        } while (!next.isEmpty());
        var waiting = asking.listTasks(
                ListTasksParams.builder()
                        .contextId(context)
                        .tenant("")
                        .pageSize(1)
                        .status(TaskState.TASK_STATE_INPUT_REQUIRED)
                        .build(),
                CONTEXT);
        Task canceled = asking.cancelTask(new TaskIdParams(waiting.tasks().get(0).id()), CONTEXT);
        return Map.of(
                "list", states,
                "total", total,
                "waiting", waiting.tasks().size(),
                "cancel", canceled.status().state().name());
    }

    private interface Deed {
        void dare() throws Exception;
    }

    /** How a refusal is known: by the class of its cause. */
    private static String refused(Deed deed) {
        try {
            deed.dare();
            return "served";
        } catch (Throwable error) {
            return (error.getCause() == null ? error : error.getCause()).getClass().getSimpleName();
        }
    }

    /** What this SDK tells of a refusal. */
    private static String said(Deed deed) {
        try {
            deed.dare();
            return "";
        } catch (Throwable error) {
            return error.getMessage();
        }
    }

    /** This SDK sends configurations in a shape from before 1.0, and reads answers in no other. */
    private Map<String, Object> pushes() throws Exception {
        String id = task(message("tck-input-required").build()).id();
        PushNotificationConfig config = new PushNotificationConfig(webhook, "a-token", null, "mine");
        Map<String, Object> came = new HashMap<>();
        came.put("created", said(() -> asking.createTaskPushNotificationConfiguration(
                new TaskPushNotificationConfig(id, config, ""), CONTEXT)));
        came.put("got", refused(() -> asking.getTaskPushNotificationConfiguration(
                new GetTaskPushNotificationConfigParams(id, "mine"), CONTEXT)));
        came.put("listed", refused(() -> asking.listTaskPushNotificationConfigurations(
                new ListTaskPushNotificationConfigParams(id), CONTEXT)));
        came.put("deleted", refused(() -> asking.deleteTaskPushNotificationConfigurations(
                new DeleteTaskPushNotificationConfigParams(id, "mine"), CONTEXT)));
        return came;
    }

    private Map<String, Object> refusals() throws Exception {
        String ended = task(message("tck-complete-task").build()).id();
        return Map.of(
                "unknown task", refused(() -> asking.getTask(new TaskQueryParams("nowhere"), CONTEXT)),
                "cancel of an ended task", refused(() -> asking.cancelTask(new TaskIdParams(ended), CONTEXT)),
                "subscription to an ended task", refused(() -> subscribed(ended, () -> {})),
                "message to an ended task", refused(() -> send(message("x").taskId(ended).build())));
    }
}
