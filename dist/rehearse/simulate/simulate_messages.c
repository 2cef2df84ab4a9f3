/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives. A message goes when its sender has served it, and a large one of an exchange by rendezvous when
 * its receiver has asked for it, too. Messages with equal ends and tag match in the order of runs. */
#include "simulate.h"

/* ---- Matching ---- */

static uint64_t hash_of(int from, int to, int64_t tag)
{
    return hash_word(hash_word(hash_word(HASH_START, (uint64_t)from), (uint64_t)to), (uint64_t)tag);
}

/* The message with these ends and tag, which is made where there is none. */
static int find_message(simulated *s, int from, int to, int64_t tag)
{
    const uint64_t hash = hash_of(from, to, tag);
    for (int probe = 0, i; (i = hash_table_find(&s->by_pair, hash, &probe)) >= 0;) {
        const sim_message *m = &s->messages.at[i];
        if (m->from == from && m->to == to && m->tag == tag)
            return i;
    }
    hash_table_add(&s->by_pair, hash, s->messages.n);
    *ARRAY_PUSH(&s->messages) = (sim_message){.send = -1, .receive = -1, .from = from, .to = to, .tag = tag};
    return s->messages.n - 1;
}

trama_status messages_add(simulated *s, int rank, step_graph *graph, const graph_messages *messages)
{
    const double eager = cluster_kind_of(s->c, rank)->eager;
    for (int i = 0; i < messages->n; i++) {
        const graph_message *given = &messages->at[i];
        graph_step *step = &graph->steps[given->step];
        const bool sends = step->kind == STEP_SEND;
        const int found = find_message(s, sends ? rank : given->peer, sends ? given->peer : rank, given->tag);
        sim_message *m = &s->messages.at[found];
        int *end = sends ? &m->send : &m->receive;
        if (*end >= 0 || ((sends ? m->receive : m->send) >= 0 && m->bytes != given->bytes))
            return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                              "trama_rehearse: rank %d, step %d: its %s of message %lld does not fit rank %d", rank,
                              given->step, sends ? "send" : "receive", (long long)given->tag, given->peer);
        *end = s->ranks[rank].first + given->step;
        m->bytes = given->bytes;
        m->value = given->value;
        *(sends ? &m->send_span : &m->receive_span) = given->span;
        m->rendezvous |= sends && step->rendezvous && (double)given->bytes > eager;
        step->message = found;
    }
    return TRAMA_OK;
}

static trama_status fail_at(const simulated *s, int64_t step, const sim_message *m, const char *problem)
{
    const int rank = simulated_rank(s, step);
    const bool sends = step == m->send;
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "trama_rehearse: rank %d, step %lld, %s rank %d with tag %lld: %s", rank,
                      (long long)(step - s->ranks[rank].first), sends ? "sends to" : "receives from",
                      sends ? m->to : m->from, (long long)m->tag, problem);
}

static void add_copy(simulated *s, int rank, int64_t step, int64_t bytes)
{
    graph_step *of = &s->graph[rank].steps[step - s->ranks[rank].first];
    of->seconds += (float)cluster_copy_seconds(cluster_kind_of(s->c, rank), bytes);
}

trama_status messages_match(simulated *s)
{
    for (int i = 0; i < s->messages.n; i++) {
        const sim_message *m = &s->messages.at[i];
        if (m->send < 0 || m->receive < 0)
            return fail_at(s, m->send < 0 ? m->receive : m->send, m, "the other rank has no such message");
        add_copy(s, m->from, m->send, sim_moves(m));
        add_copy(s, m->to, m->receive, sim_moves(m));
    }
    return TRAMA_OK;
}

trama_status messages_stuck(const simulated *s)
{
    for (int i = 0; i < s->messages.n; i++) {
        const sim_message *m = &s->messages.at[i];
        if (m->posted > m->handled)
            return fail_at(s, m->receive, m, "the ranks wait for each other, and this step waits first");
        if (m->sent > m->begun)
            return fail_at(s, m->send, m, "the ranks wait for each other, and this step waits first");
    }
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "trama_rehearse: steps of a rank wait for each other");
}

/* ---- On the way ---- */

static int64_t item_of(const simulated *s, int run, int step)
{
    return run * s->n_steps + step;
}

/* Lets messages go that may go now. late: the receiver's step is the last that was waited for. */
static void let_go(simulated *s, int message, bool late)
{
    sim_message *m = &s->messages.at[message];
    const double latency = network_latency(s->net, m->from, m->to);
    const bool rendezvous = m->rendezvous && sim_moves(m) > 0;
    while (m->begun < (rendezvous && m->posted < m->sent ? m->posted : m->sent)) {
        if (late && rendezvous)
            s->cause[m->send] = s->cause[m->receive];
        simulate_later(s, s->now + (rendezvous ? 3 : 1) * latency, EVENT_FLOW,
                       (int64_t)m->begun++ * s->messages.n + message);
    }
}

/* Gives messages to the receiver's messenger that have come and are asked for. */
static void hand_over(simulated *s, int message, bool arrives)
{
    sim_message *m = &s->messages.at[message];
    while (m->handled < m->arrived && m->handled < m->posted) {
        if (arrives)
            s->cause[m->receive] = m->send;
        workers_queue(s, item_of(s, m->handled++, m->receive));
        m = &s->messages.at[message];
    }
}

void messages_ready(simulated *s, int64_t item)
{
    const graph_step *of = simulated_step(s, item % s->n_steps);
    if (of->kind == STEP_SEND) {
        workers_queue(s, item);
        return;
    }
    s->messages.at[of->message].posted++;
    let_go(s, of->message, true);
    hand_over(s, of->message, false);
}

void messages_served(simulated *s, int64_t item)
{
    const graph_step *of = simulated_step(s, item % s->n_steps);
    if (of->kind == STEP_RECEIVE) {
        simulated_finish(s, item);
        return;
    }
    s->messages.at[of->message].sent++;
    let_go(s, of->message, false);
}

void messages_flow(simulated *s, int64_t number)
{
    const int message = (int)(number % s->messages.n), run = (int)(number / s->messages.n);
    const sim_message *m = &s->messages.at[message];
    const int flow = network_begin(s->net, s->now, m->from, m->to, (double)sim_moves(m));
    if (flow >= s->n_flows) {
        const int room = 2 * flow + 16;
        s->flows = trama_resize(s->flows, (size_t)room * sizeof *s->flows);
        s->n_flows = room;
    }
    s->flows[flow] = (struct sim_flow){message, run, s->now};
    simulated_change(s, m->from, 0, 1);
    simulated_change(s, m->to, 0, 1);
}

static void tell(const simulated *s, const struct sim_flow *f)
{
    const sim_message *m = &s->messages.at[f->message];
    if (!s->event)
        return;
    const trama_rehearsed e = {.rank = m->from,
                               .worker = -1,
                               .peer = m->to,
                               .run = f->run,
                               .priority = simulated_step(s, m->send)->priority,
                               .name = trama_value_name(s->names->program->values.at[m->value]),
                               .begin = f->begin,
                               .end = s->now,
                               .bytes = m->bytes,
                               .tag = m->tag,
                               .step = m->send - s->ranks[m->from].first,
                               .received = m->receive - s->ranks[m->to].first,
                               .submitted = simulated_submission(s, m->from, f->run, m->send)};
    s->event(s->closure, &e);
}

void messages_flow_end(simulated *s, int flow)
{
    const struct sim_flow f = s->flows[flow];
    sim_message *m = &s->messages.at[f.message];
    tell(s, &f);
    simulated_change(s, m->from, 0, -1);
    simulated_change(s, m->to, 0, -1);
    m->arrived++;
    simulated_finish(s, item_of(s, f.run, m->send));
    hand_over(s, f.message, true);
}
