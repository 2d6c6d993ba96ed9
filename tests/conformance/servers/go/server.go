// An agent on the official Go SDK for A2A 1.0 or 0.3, which does what the first word of a message asks for.
//
// `server <version> <binding> [push] [guarded]` prints its base URL. `GET /ran` lists the texts of its executions.
// `guarded` leaves the guard of webhooks as it is by default: it calls none on this machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/push"
)

const pause = 20 * time.Millisecond

var (
	lock sync.Mutex
	ran  = []string{}
)

func note(text string) {
	lock.Lock()
	defer lock.Unlock()
	ran = append(ran, text)
}

type scripted struct{}

func text(content string) *a2a.Part { return a2a.NewTextPart(content) }

func (scripted) Execute(ctx context.Context, info *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		asked := info.Message.Parts[0].Text()
		note(asked)
		word, rest, _ := strings.Cut(asked, " ")
		if word == "message" {
			said := a2a.NewMessage(a2a.MessageRoleAgent, text("Hello, "+rest))
			said.ID = "said"
			yield(said, nil)
			return
		}
		say := func(state a2a.TaskState, parts ...*a2a.Part) bool {
			var message *a2a.Message
			if len(parts) > 0 {
				message = a2a.NewMessageForTask(a2a.MessageRoleAgent, info, parts...)
			}
			return yield(a2a.NewStatusUpdateEvent(info, state, message), nil)
		}
		emit := func(name string, metadata map[string]any, parts ...*a2a.Part) bool {
			event := a2a.NewArtifactEvent(info, parts...)
			event.Artifact.Name, event.Artifact.Metadata = name, metadata
			return yield(event, nil)
		}
		if info.StoredTask != nil {
			metadata, _ := json.Marshal(info.Message.Metadata)
			_ = emit("same", nil, text(fmt.Sprintf("%s %s", info.TaskID, info.ContextID)))
			_ = say(a2a.TaskStateCompleted, text(strings.ReplaceAll(string(metadata), `":"`, `": "`)))
			return
		}
		_ = yield(a2a.NewSubmittedTask(info, info.Message), nil) && say(a2a.TaskStateWorking)
		switch word {
		case "stream":
			count, _ := strconv.Atoi(rest)
			_ = say(a2a.TaskStateWorking, text("Counting"))
			for number := range count {
				time.Sleep(pause)
				event := a2a.NewArtifactUpdateEvent(info, "lines", text(fmt.Sprintf("%d\n", number)))
				event.Artifact.Name, event.Append, event.LastChunk = "lines.txt", number > 0, number == count-1
				_ = yield(event, nil)
			}
			_ = say(a2a.TaskStateCompleted, text("Counted"))
		case "ask":
			question := a2a.NewMessageForTask(a2a.MessageRoleAgent, info, text("Which colour?"), a2a.NewDataPart(map[string]any{"n": 1}))
			question.SetMeta("form", "colours")
			yield(a2a.NewStatusUpdateEvent(info, a2a.TaskStateInputRequired, question), nil)
		case "auth":
			_ = say(a2a.TaskStateAuthRequired, text("Sign in"))
			time.Sleep(2 * time.Second) // the client signs in elsewhere, and the execution goes on by itself
			say(a2a.TaskStateCompleted, text("Signed in"))
		case "fail":
			say(a2a.TaskStateFailed, text(rest))
		case "reject":
			say(a2a.TaskStateRejected, text(rest))
		case "kinds":
			_ = emit("copy", map[string]any{"seen": info.Message.Metadata}, info.Message.Parts...)
			say(a2a.TaskStateCompleted)
		case "slow":
			_ = say(a2a.TaskStateWorking, text("Digging"))
			<-ctx.Done()
		case "hang":
			seconds, _ := strconv.ParseFloat(rest, 64)
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			_ = emit("late.txt", nil, text("late"))
			say(a2a.TaskStateCompleted)
		default:
			yield(nil, errors.New("ZeroDivisionError"))
		}
	}
}

func (scripted) Cancel(_ context.Context, info *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		note("cancel")
		yield(a2a.NewStatusUpdateEvent(info, a2a.TaskStateCanceled, nil), nil)
	}
}

func main() {
	version, binding, options := a2a.ProtocolVersion(os.Args[1]), a2a.TransportProtocol(os.Args[2]), os.Args[3:]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	url, has := "http://"+listener.Addr().String(), func(option string) bool { return slices.Contains(options, option) }
	place := a2a.NewAgentInterface(url, binding)
	place.ProtocolVersion = version
	card := &a2a.AgentCard{
		Name: "Scripted", Description: "Does what it is told", Version: "1",
		Capabilities:        a2a.AgentCapabilities{Streaming: !has("silent"), PushNotifications: has("push")},
		SupportedInterfaces: []*a2a.AgentInterface{place},
		DefaultInputModes:   []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills: []a2a.AgentSkill{{ID: "do", Name: "Do", Description: "Does it", Tags: []string{"test"}}},
	}
	var settings []a2asrv.RequestHandlerOption
	if has("push") {
		sender := push.NewHTTPPushSender(&push.HTTPSenderConfig{AllowPrivateNetworks: !has("guarded")})
		settings = append(settings, a2asrv.WithPushNotifications(push.NewInMemoryStore(), sender))
	}
	handler, mux := a2asrv.NewHandler(scripted{}, settings...), http.NewServeMux()
	mux.HandleFunc("GET /ran", func(answer http.ResponseWriter, _ *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		_ = json.NewEncoder(answer).Encode(ran)
	})
	documents, server := a2asrv.NewStaticAgentCardHandler(card), a2asrv.NewRESTHandler(handler)
	if version == a2av0.Version {
		documents, server = a2asrv.NewAgentCardHandler(a2av0.NewStaticAgentCardProducer(card)), a2av0.NewRESTHandler(handler)
	}
	if binding == a2a.TransportProtocolJSONRPC && version == a2av0.Version {
		server = a2av0.NewJSONRPCHandler(handler)
	} else if binding == a2a.TransportProtocolJSONRPC {
		server = a2asrv.NewJSONRPCHandler(handler)
	}
	mux.Handle("/.well-known/agent-card.json", documents)
	mux.Handle("/", server)
	fmt.Println(url)
	_ = http.Serve(listener, mux)
}
