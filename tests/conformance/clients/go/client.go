// The official Go SDK as a client of A2A 1.0 or 0.3. Knows nothing of ours.
// `client <version> <agent's URL> <JSONRPC|HTTP+JSON> <webhook> <streamed|buffered>` prints one JSON object: what came of
// each deed, for 0.3 in its words.
// A place that is `buffered` tells a stream when it has ended.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
)

type deeds map[string]any

var ctx = context.Background()

var names = map[error]string{
	a2a.ErrTaskNotFound:         "TaskNotFoundError",
	a2a.ErrTaskNotCancelable:    "TaskNotCancelableError",
	a2a.ErrUnsupportedOperation: "UnsupportedOperationError",
	a2a.ErrInvalidParams:        "InvalidParamsError",
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func message(prefix string) *a2a.Message {
	said := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("hello"))
	said.ID = prefix + "-" + a2a.NewMessageID()
	return said
}

func about(prefix string, task a2a.TaskID) *a2a.SendMessageRequest {
	said := message(prefix)
	said.TaskID = task
	return &a2a.SendMessageRequest{Message: said}
}

func text(parts a2a.ContentParts) string {
	all := ""
	for _, part := range parts {
		all += part.Text()
	}
	return all
}

// What a stream's event is, in two words.
func told(event any) []string {
	switch one := event.(type) {
	case *a2a.Task:
		return []string{"task", string(one.Status.State)}
	case *a2a.TaskStatusUpdateEvent:
		return []string{"status_update", string(one.Status.State)}
	case *a2a.TaskArtifactUpdateEvent:
		return []string{"artifact_update", text(one.Artifact.Parts)}
	case *a2a.Message:
		return []string{"message", text(one.Parts)}
	}
	return []string{fmt.Sprintf("%T", event), ""}
}

// How a refusal is known: by its class, and by the text that an SDK shows.
func refused(err error) string {
	for class, name := range names {
		if errors.Is(err, class) {
			return name
		}
	}
	if err == nil {
		return "served"
	}
	return err.Error()
}

func task(client *a2aclient.Client, request *a2a.SendMessageRequest) *a2a.Task {
	made, err := client.SendMessage(ctx, request)
	check(err)
	return made.(*a2a.Task)
}

func allOf(events func(func(a2a.Event, error) bool)) ([][]string, error) {
	seen := [][]string{}
	for event, err := range events {
		if err != nil {
			return seen, err
		}
		seen = append(seen, told(event))
	}
	return seen, nil
}

func sends(client *a2aclient.Client) deeds {
	whole := task(client, about("tck-complete-task", ""))
	said, err := client.SendMessage(ctx, about("tck-message-response", ""))
	check(err)
	atOnce := about("tck-input-required", "")
	atOnce.Config = &a2a.SendMessageConfig{ReturnImmediately: true}
	file := task(client, about("tck-artifact-file", ""))
	streamed, err := allOf(client.SendStreamingMessage(ctx, about("tck-stream-artifact-chunked", "")))
	check(err)
	single, err := allOf(client.SendStreamingMessage(ctx, about("tck-message-response", "")))
	check(err)
	return deeds{
		"send":                []string{string(whole.Status.State), text(whole.Status.Message.Parts)},
		"message":             text(said.(*a2a.Message).Parts),
		"at once":             string(task(client, atOnce).Status.State),
		"file":                string(file.Artifacts[0].Parts[0].Raw()),
		"stream":              streamed,
		"stream of a message": single,
	}
}

// Opens a subscription, and gives what it told first before all that it tells until its end.
func subscribed(client *a2aclient.Client, id a2a.TaskID, meanwhile func()) [][]string {
	seen := [][]string{}
	for event, err := range client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: id}) {
		check(err)
		seen = append(seen, told(event))
		if len(seen) == 1 {
			meanwhile()
		}
	}
	return seen
}

func asks(client *a2aclient.Client, buffered bool) deeds {
	opened := task(client, about("tck-input-required", ""))
	var ended *a2a.Task
	answer := func() { ended = task(client, about("tck-complete-task", opened.ID)) }
	var subscription [][]string
	if buffered {
		working := about("test-resubscribe-message-id", "")
		working.Config = &a2a.SendMessageConfig{ReturnImmediately: true}
		subscription = subscribed(client, task(client, working).ID, func() {})
		answer()
	} else {
		subscription = subscribed(client, opened.ID, answer)
	}
	one := 1
	got, err := client.GetTask(ctx, &a2a.GetTaskRequest{ID: opened.ID, HistoryLength: &one})
	check(err)
	return deeds{
		"asked":        told(opened),
		"subscription": subscription,
		"answered":     told(ended),
		"history":      len(got.History) == 1 && got.History[0].Role == a2a.MessageRoleUser,
	}
}

func lists(client *a2aclient.Client) deeds {
	inContext := a2a.NewContextID()
	for _, prefix := range []string{"tck-complete-task", "tck-reject-task", "tck-input-required"} {
		request := about(prefix, "")
		request.Message.ContextID = inContext
		task(client, request)
	}
	first, err := client.ListTasks(ctx, &a2a.ListTasksRequest{ContextID: inContext, PageSize: 2})
	check(err)
	page := &a2a.ListTasksRequest{ContextID: inContext, PageSize: 2, PageToken: first.NextPageToken}
	second, err := client.ListTasks(ctx, page)
	check(err)
	waiting, err := client.ListTasks(ctx, &a2a.ListTasksRequest{ContextID: inContext, Status: a2a.TaskStateInputRequired})
	check(err)
	canceled, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: waiting.Tasks[0].ID})
	check(err)
	states := []string{}
	for _, one := range append(first.Tasks, second.Tasks...) {
		states = append(states, string(one.Status.State))
	}
	return deeds{
		"list":    states,
		"total":   first.TotalSize,
		"waiting": len(waiting.Tasks),
		"cancel":  string(canceled.Status.State),
	}
}

func pushes(client *a2aclient.Client, webhook string) deeds {
	config := &a2a.PushConfig{ID: "mine", URL: webhook, Token: "a-token-of-the-client"}
	asked := about("tck-input-required", "")
	asked.Config = &a2a.SendMessageConfig{PushConfig: config}
	id := task(client, asked).ID
	created, err := client.CreateTaskPushConfig(ctx, &a2a.PushConfig{TaskID: id, URL: "https://example.com/hook"})
	check(err)
	got, err := client.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigRequest{TaskID: id, ID: "mine"})
	check(err)
	listed, err := client.ListTaskPushConfigs(ctx, &a2a.ListTaskPushConfigRequest{TaskID: id})
	check(err)
	check(client.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigRequest{TaskID: id, ID: created.ID}))
	rest, err := client.ListTaskPushConfigs(ctx, &a2a.ListTaskPushConfigRequest{TaskID: id})
	check(err)
	left := []string{}
	for _, one := range rest {
		left = append(left, one.ID)
	}
	return deeds{"task with a webhook": id, "webhook": got, "webhooks": len(listed), "left": left}
}

func refusals(client *a2aclient.Client) deeds {
	ended := task(client, about("tck-complete-task", "")).ID
	_, unknown := client.GetTask(ctx, &a2a.GetTaskRequest{ID: "nowhere"})
	_, canceled := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: ended})
	_, subscription := allOf(client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: ended}))
	_, sent := client.SendMessage(ctx, about("x", ended))
	_, card := client.GetExtendedAgentCard(ctx, &a2a.GetExtendedAgentCardRequest{})
	return deeds{
		"unknown task":                  refused(unknown),
		"cancel of an ended task":       refused(canceled),
		"subscription to an ended task": refused(subscription),
		"message to an ended task":      refused(sent),
		"extended card":                 refused(card),
	}
}

// The name of a state in 0.3; any other text as it is.
func oldState(state string) string {
	name, isState := strings.CutPrefix(state, "TASK_STATE_")
	if !isState {
		return state
	}
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// The events of a stream in the words of 0.3.
func allOld(events [][]string) [][]string {
	old := [][]string{}
	for _, one := range events {
		kind, _, _ := strings.Cut(one[0], "_")
		old = append(old, []string{kind, oldState(one[1])})
	}
	return old
}

// The deeds of a client of 0.3, which has no lists of tasks.
func oldDeeds(client *a2aclient.Client, webhook string, buffered bool) deeds {
	sent, asked := sends(client), asks(client, buffered)
	question, err := allOf(client.SendStreamingMessage(ctx, about("tck-input-required", "")))
	check(err)
	config := &a2a.PushConfig{ID: "mine", URL: webhook, Token: "a-token-of-the-client"}
	request := about("tck-input-required", "")
	request.Config = &a2a.SendMessageConfig{PushConfig: config}
	id := task(client, request).ID
	other, err := client.CreateTaskPushConfig(ctx, &a2a.PushConfig{ID: "other", TaskID: id, URL: "https://example.com/hook"})
	check(err)
	got, err := client.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigRequest{TaskID: id, ID: "mine"})
	check(err)
	canceled, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id})
	check(err)
	whole, roles := sent["send"].([]string), []string{}
	if asked["history"].(bool) {
		roles = append(roles, "user")
	}
	return deeds{
		"send":                 []string{oldState(whole[0]), whole[1]},
		"message":              []any{"message", sent["message"]},
		"stream":               allOld(sent["stream"].([][]string)),
		"stream of a question": allOld(question)[len(question)-1],
		"at once":              oldState(sent["at once"].(string)),
		"subscription":         allOld(asked["subscription"].([][]string)),
		"history":              roles,
		"task with a webhook":  id,
		"set":                  other.ID,
		"webhook":              got,
		"cancel":               oldState(string(canceled.Status.State)),
	}
}

func main() {
	version, url, binding := a2a.ProtocolVersion(os.Args[1]), os.Args[2], a2a.TransportProtocol(os.Args[3])
	webhook, buffered := os.Args[4], os.Args[5] == "buffered"
	patient := &http.Client{Timeout: time.Minute}
	resolver, options := agentcard.NewResolver(patient), []a2aclient.FactoryOption{
		a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []a2a.TransportProtocol{binding}}),
	}
	if version == a2av0.Version {
		resolver.CardParser = a2av0.NewAgentCardParser()
		options = append(options, a2aclient.WithDefaultsDisabled(),
			a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: patient}),
			a2av0.WithRESTTransport(a2av0.RESTTransportConfig{Client: patient}))
	} else {
		options = append(options, a2aclient.WithJSONRPCTransport(patient), a2aclient.WithRESTTransport(patient))
	}
	card, err := resolver.Resolve(ctx, url)
	check(err)
	for _, one := range card.SupportedInterfaces {
		one.URL = url
	}
	client, err := a2aclient.NewFromCard(ctx, card, options...)
	check(err)
	all := deeds{"card": card.Name, "refusals": refusals(client)}
	some := []deeds{}
	if version == a2av0.Version {
		some = append(some, oldDeeds(client, webhook, buffered))
	} else {
		some = append(some, sends(client), asks(client, buffered), lists(client), pushes(client, webhook))
	}
	for _, one := range some {
		for name, came := range one {
			all[name] = came
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(all))
}
