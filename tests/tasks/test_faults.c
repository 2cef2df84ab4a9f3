/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that die, stop or stray: this program starts itself under mpirun as the victim, and watches what becomes of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "network.h"

enum { RANKS = 4, CULPRIT = 2, FAULT_STEP = 50, LAST_STEP = 60, SKIPPED = 77 };
enum { PATIENCE = 60 }; /* seconds; nothing that works takes as long on a busy machine */

/* ---- The victim ---- */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

/* Returns whether the rank leaves out the run of this step. The dawdling one waits for SIGUSR1. */
static bool commit_fault(const char *fault)
{
    sigset_t go_on;
    int signal;
    sigemptyset(&go_on);
    sigaddset(&go_on, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &go_on, NULL);
    say("rank %d pid %d: %s\n", my_rank, (int)getpid(), fault);
    if (!strcmp(fault, "killed"))
        raise(SIGKILL);
    if (!strcmp(fault, "stopped"))
        raise(SIGSTOP);
    if (!strcmp(fault, "dawdling"))
        sigwait(&go_on, &signal);
    return !strcmp(fault, "straying");
}

/* Before MPI or Trama says so. */
static int rank_of_launcher(void)
{
    const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return -1;
}

static int victim(const char *fault)
{
    my_rank = rank_of_launcher();
    if (!strcmp(fault, "stopped early") && my_rank == CULPRIT) {
        say("rank %d pid %d: %s\n", my_rank, (int)getpid(), fault);
        raise(SIGSTOP);
    }
    start();
    network net = network_new("dp=2,mp=2", TRAMA_F64, false, 3, small_sizes);
    plain_net plain = plain_new(3, small_sizes, SEED);
    net.e = compile(net.program);
    for (int step = 0; step < LAST_STEP; step++) {
        samples s = samples_new(&net, 11, step);
        network_feed(&net, &s);
        if (step != FAULT_STEP || my_rank != CULPRIT || !commit_fault(fault))
            must(trama_run(net.e, net.train));
        double loss = network_loss(&net), wanted = plain_step(&plain, s.n, s.x, s.y, false, net.lr);
        demand(relative(loss, wanted) < 1e-10, "step %d: %.17g instead of %.17g", step, loss, wanted);
        samples_free(&s);
    }
    plain_free(&plain);
    network_free(&net);
    stop();
    say("rank %d is through\n", my_rank);
    return EXIT_SUCCESS;
}

/* ---- Watching ---- */

typedef struct job {
    pid_t pid;
    int out; /* its output, both streams */
    size_t n;
    char said[1 << 16];
} job;

static job launch(const char *fault)
{
    static char self[4096];
    int ends[2];
    job j = {.n = 0};
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    demand(length > 0 && !pipe(ends), "no pipe to a job");
    self[length] = 0;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    j.pid = fork();
    if (j.pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        execlp("mpirun", "mpirun", "-n", "4", self, "victim", fault, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    j.out = ends[0];
    return j;
}

/* Reads what the job says until it ends, or says the words; whether it said them. */
static bool listen_for(job *j, const char *words, double patience)
{
    double until = seconds() + patience;
    while (!words || !strstr(j->said, words)) {
        struct pollfd p = {.fd = j->out, .events = POLLIN};
        double left = until - seconds();
        if (left <= 0 || poll(&p, 1, (int)(1000 * left) + 1) == 0)
            return false;
        ssize_t more = read(j->out, j->said + j->n, sizeof j->said - 1 - j->n);
        if (more <= 0)
            return words == NULL;
        j->n += (size_t)more;
        j->said[j->n] = 0;
    }
    return true;
}

static int end_of(job *j)
{
    int status = 0;
    while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(j->out);
    return status;
}

static void give_up(job *j, const char *what)
{
    kill(j->pid, SIGTERM);
    listen_for(j, NULL, PATIENCE);
    kill(j->pid, SIGKILL);
    end_of(j);
    fail_at(__FILE__, __LINE__, "%s; the job said:\n%.4000s", what, j->said);
}

/* "rank 2 pid 123: stopped" */
static pid_t culprit_of(job *j, const char *fault)
{
    char words[64];
    int pid = 0;
    snprintf(words, sizeof words, ": %s\n", fault);
    if (!listen_for(j, words, PATIENCE))
        give_up(j, "the fault never came");
    const char *at = strstr(j->said, "rank 2 pid ");
    if (!at || sscanf(at, "rank 2 pid %d", &pid) != 1)
        give_up(j, "nobody says who it is");
    return pid;
}

/* The watchdog of another rank says what it waits for, from whom, since which step. */
static void demand_report(job *j)
{
    char name[100], from[32];
    int step = -1;
    snprintf(from, sizeof from, " from rank %d, step ", CULPRIT);
    if (!listen_for(j, from, PATIENCE) || !listen_for(j, " bytes, since ", PATIENCE))
        give_up(j, "nobody reports");
    char *line = strstr(j->said, from);
    while (line > j->said && line[-1] != '\n')
        line--;
    if (sscanf(line, " receive of %99s from rank %*d, step %d,", name, &step) != 2 || name[0] == '?')
        give_up(j, "the report names no value");
    if (step < FAULT_STEP - 1 || step > FAULT_STEP + 1) /* the step before may still be on its way */
        give_up(j, "the report names another step");
    if (!strstr(j->said, "trama: warning: rank ") || !strstr(j->said, "nothing has ended for "))
        give_up(j, "the report does not say who waits, and since when");
}

static void demand_good_end(job *j)
{
    if (!listen_for(j, NULL, PATIENCE))
        give_up(j, "the job does not go on");
    int status = end_of(j), through = 0;
    demand(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d after it went on; the job said:\n%.4000s", status,
           j->said);
    for (const char *at = j->said; (at = strstr(at, "is through")); at++)
        through++;
    demand(through == RANKS, "%d ranks finish; the job said:\n%.4000s", through, j->said);
}

START_TEST(a_killed_rank_ends_the_job_with_a_message)
{
    job j = launch("killed");
    culprit_of(&j, "killed");
    if (!listen_for(&j, NULL, PATIENCE))
        give_up(&j, "the job goes on after one of its ranks was killed");
    int status = end_of(&j);
    demand(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "the job ends as if nothing were wrong");
    demand(strstr(j.said, "signal 9") || strstr(j.said, "Killed") || strstr(j.said, "KILLED"), "the job only says:\n%s",
           j.said);
    demand(!strstr(j.said, "is through"), "ranks finish without the killed one");
}
END_TEST

START_TEST(a_stopped_rank_is_reported_and_may_go_on)
{
    job j = launch("stopped");
    pid_t culprit = culprit_of(&j, "stopped");
    demand_report(&j);
    kill(culprit, SIGCONT);
    demand_good_end(&j);
}
END_TEST

START_TEST(a_rank_that_is_stopped_while_others_start_is_reported)
{
    job j = launch("stopped early");
    pid_t culprit = culprit_of(&j, "stopped early");
    if (!listen_for(&j, "trama_start", 60) || !listen_for(&j, " waits since ", 60))
        give_up(&j, "nobody reports");
    kill(culprit, SIGCONT);
    demand_good_end(&j);
}
END_TEST

START_TEST(a_rank_that_lives_but_does_not_come_is_reported)
{
    job j = launch("dawdling");
    pid_t culprit = culprit_of(&j, "dawdling");
    demand_report(&j);
    kill(culprit, SIGUSR1);
    demand_good_end(&j);
}
END_TEST

START_TEST(a_rank_that_leaves_out_a_run_is_named_where_calls_are_compared)
{
    setenv("TRAMA_CHECK_CALLS", "1", 1);
    job j = launch("straying");
    unsetenv("TRAMA_CHECK_CALLS");
    culprit_of(&j, "straying");
    if (!listen_for(&j, NULL, PATIENCE))
        give_up(&j, "the job goes on");
    int status = end_of(&j);
    demand(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "the job ends as if nothing were wrong");
    demand(strstr(j.said, "the ranks make different calls: rank 0 trama_run(train #0)") &&
               strstr(j.said, ", rank 2 trama_read(") && strstr(j.said, "test_faults.c:"),
           "the job only says:\n%.4000s", j.said);
}
END_TEST

static int watch(void)
{
    const TTest *tests[] = {a_killed_rank_ends_the_job_with_a_message, a_stopped_rank_is_reported_and_may_go_on,
                            a_rank_that_is_stopped_while_others_start_is_reported,
                            a_rank_that_lives_but_does_not_come_is_reported,
                            a_rank_that_leaves_out_a_run_is_named_where_calls_are_compared};
    if (!TRAMA_HAVE_MPI || system("mpirun --version >/dev/null 2>&1") != 0) {
        printf("skipped: there is no mpirun\n");
        return SKIPPED;
    }
    setenv("TRAMA_WATCHDOG", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1); /* others do not look at these */
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);
    setenv("PRTE_MCA_hwloc_default_binding_policy", "none", 1);
    return run_tests(__FILE__, tests, (int)(sizeof tests / sizeof *tests));
}

int main(int argc, char **argv)
{
    return argc == 3 && !strcmp(argv[1], "victim") ? victim(argv[2]) : watch();
}
