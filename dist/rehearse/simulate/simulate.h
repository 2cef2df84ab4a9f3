/* SPDX-License-Identifier: Apache-2.0 */
/* The discrete-event simulation of all ranks, over their step graphs. simulate.c has time and the steps, and refuses to
 * know plans; simulate_workers.c has the queues of workers; simulate_cores.c shares cores among threads;
 * simulate_messages.c matches sends with receives. */
#ifndef SIMULATE_H
#define SIMULATE_H

#include "hash_table.h"
#include "network.h"
#include "step_graph.h"

/* A message: the steps at its ends, as numbers over all ranks, and how many runs have come how far. */
typedef struct sim_message {
    int send, receive; /* -1: not found yet */
    int from, to;      /* ranks */
    int64_t tag, bytes;
    int sent, posted, begun, arrived, handled;
    bool rendezvous;
    int send_span, receive_span; /* plan_step.span of its ends */
    int value;                   /* of which it carries a part */
} sim_message;

/* Bytes that go: none of elements that the receiver reads in the sender's memory. */
static inline int64_t sim_moves(const sim_message *m)
{
    return plan_is_loan(m->send_span, m->receive_span) ? 0 : m->bytes;
}

/* The item that a worker does: a step of a run, run * steps + step. */
typedef struct sim_worker {
    int rank, place; /* place: over all ranks; -1: serves messages alone */
    int cores;       /* the entry of simulated.cores that its thread shares; -1: of a GPU */
    int64_t item;    /* -1: idle */
    double since;
    double left, ends, changed; /* seconds of work on a core of its own, at the time `changed`; the end at this speed */
    int64_t before;             /* the item before; -1 */
    double ended;               /* the end of that; -1 */
    event_queue own;
} sim_worker;

/* Cores of a rank, or of a node with fewer cores than ranks. A program's thread that submits takes a core, since it
 * slept before, or waits for one; the workers that work share the others. */
typedef struct sim_cores {
    int cores, node; /* node: -1 where they are a rank's */
    int first_worker, n_workers;
    int working, submitting; /* threads */
    double *free_at;         /* [cores] of a node: the end of the last submission on it */
} sim_cores;

typedef struct sim_place {
    int first_worker, n_workers;
    event_queue ready;
} sim_place;

typedef struct sim_rank {
    int first; /* its steps begin at this number */
    int first_worker, first_place;
    int messenger;                   /* the worker that serves its messages */
    int submitted, ended;            /* runs */
    int *left;                       /* [slots] steps of a run that are not done */
    double *submit_at;               /* [slots] begin of the submission of a run */
    double submits_until;            /* the submitting thread is busy */
    bool submitting;                 /* it is, and has a core */
    bool woken;                      /* in simulated.woken */
    int cores;                       /* its entry of simulated.cores */
    int tasks, flows;                /* running, under way */
    double work, busy;               /* seconds of its workers: on cores of their own; passed */
    double changed, moving, exposed; /* time of the last change; seconds with flows; of these without a task */
} sim_rank;

typedef struct simulated {
    const trama_cluster *c;
    const machine *m;
    step_names *names;
    step_graph *graph; /* [n_ranks] */
    int n_ranks, runs, window, slots;
    double own; /* seconds of the program's own work before each run */
    int reads;  /* values that it reads there */
    trama_rehearsal_event event;
    void *closure;

    int64_t n_steps; /* of all ranks */
    sim_rank *ranks;
    ARRAY(sim_message) messages;
    hash_table by_pair; /* of messages of which one end is known */
    ARRAY(sim_worker) workers;
    ARRAY(sim_place) places;
    ARRAY(sim_cores) cores;
    network *net;
    ARRAY(int64_t) orders; /* items that end now */
    ARRAY(int) woken;      /* ranks whose idle workers may have something to do */
    event_queue events;
    struct sim_flow {
        int message, run;
        double begin;
    } * flows; /* [flows of the network] */
    int n_flows;
    int *waits;     /* [slots][steps] */
    double *finish; /* [steps] of the last run that did it */
    int *cause; /* [steps] the step whose end let it begin; SIM_SUBMISSION; below that: -2 - a step of another run */
    double now;
    double *run_ends; /* [runs] */
    int64_t n_done;   /* items */
} simulated;

enum { SIM_SUBMISSION = -1 };
typedef enum { EVENT_WORKER, EVENT_READY, EVENT_FLOW, EVENT_SUBMITTED, N_EVENTS } sim_event;

static inline void simulate_later(simulated *s, double at, sim_event kind, int64_t number)
{
    event_queue_put(&s->events, at, number * N_EVENTS + kind);
}

/* simulate.c. Ranks are added one after the other; simulated_add takes over the graph and the messages, whose numbers
 * in the graph change. Errors are E_SYSTEM: a message that one end lacks, and steps that wait for ever. */
simulated *simulated_new(const trama_cluster *c, const machine *m, step_names *names, int runs, int window);
void simulated_free(simulated **s);
trama_status simulated_add(simulated *s, step_graph graph, const graph_messages *messages);
trama_status simulated_run(simulated *s);

int simulated_rank(const simulated *s, int64_t step);
const graph_step *simulated_step(const simulated *s, int64_t step);
double simulated_submission(const simulated *s, int rank, int64_t run, int64_t step); /* the time at which it ends */
void simulated_finish(simulated *s, int64_t item);                                    /* its step is done */
void simulated_change(simulated *s, int rank, int tasks, int flows);                  /* of what is under way */

/* simulate_workers.c */
void workers_add(simulated *s, int rank);
void workers_queue(simulated *s, int64_t item); /* a step that is ready: a task, an order, or an end of a message */
void workers_choose(simulated *s);              /* at the end of a time: idle workers take what is ready */
void workers_end(simulated *s, int worker);     /* the item of a worker ends now, unless its core went elsewhere */

/* simulate_cores.c */
void cores_add(simulated *s, int rank);                      /* of a rank whose workers are the last */
void cores_work(simulated *s, int worker, double seconds);   /* a worker, idle before or not, has work */
void cores_idle(simulated *s, int worker);                   /* it has none */
double cores_submit(simulated *s, int rank, double seconds); /* sets submits_until; returns when it begins */
void cores_submitted(simulated *s, int rank);                /* unless submits_until is later now */

/* simulate_messages.c */
trama_status messages_add(simulated *s, int rank, step_graph *graph, const graph_messages *messages);
trama_status messages_match(simulated *s);        /* each has both ends, which copy what it moves */
trama_status messages_stuck(const simulated *s);  /* the error that names the step that waits */
void messages_ready(simulated *s, int64_t item);  /* a send or receive that waits for no step */
void messages_served(simulated *s, int64_t item); /* the messenger has done its part of it */
void messages_flow(simulated *s,
                   int64_t number); /* the first byte of a message comes: number = run * messages + message */
void messages_flow_end(simulated *s, int flow);

#endif
