/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of StarPU's measurements. StarPU ends the process where it cannot write them, and without HOME it takes
 * /tmp/.starpu, which another user may own. So Trama finds a writable folder and names it to StarPU. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environment.h"

static char *fresh;  /* made and removed by this process; or NULL */
static pid_t maker;  /* the process that made it: a child of fork does not remove it */
static char *hidden; /* value of XDG_CACHE_HOME while StarPU starts */

/* Makes a folder and its parents, with access for the user alone. */
static bool make_folders(const char *path)
{
    char *part = trama_text_copy(path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(part, S_IRWXU);
        *slash = '/';
    }
    bool made = !mkdir(part, S_IRWXU) || errno == EEXIST;
    free(part);
    return made;
}

/* Whether a file can be made and written in the folder; errno has the reason if not. */
static bool can_write(const char *folder)
{
    text path = {0};
    char block[512] = {0};
    if (!make_folders(folder))
        return false;
    text_add(&path, "%s/.trama_XXXXXX", folder);
    int file = mkstemp(path.at);
    bool good = file >= 0 && write(file, block, sizeof block) == (ssize_t)sizeof block;
    int reason = errno;
    if (file >= 0) {
        close(file);
        unlink(path.at);
    }
    free(path.at);
    errno = reason;
    return good;
}

/* Whether StarPU can write its measurements with this STARPU_HOME. */
static bool is_home(const char *home)
{
    text path = {0};
    text_add(&path, "%s/.starpu/sampling/bus", home);
    bool good = can_write(path.at);
    int reason = errno;
    free(path.at);
    errno = reason;
    return good;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* StarPU prefers XDG_CACHE_HOME to STARPU_HOME. */
static void hide_cache(void)
{
    free(hidden);
    hidden = trama_text_copy(getenv("XDG_CACHE_HOME"));
    unsetenv("XDG_CACHE_HOME");
}

void home_found(void)
{
    if (hidden)
        setenv("XDG_CACHE_HOME", hidden, 1);
    free(hidden);
    hidden = NULL;
}

/* Sets STARPU_HOME to the first of the caches that can be written; false where there is none. */
static bool find_cache(void)
{
    static const struct {
        const char *variable, *below;
    } caches[] = {{"TRAMA_CACHE", ""}, {"XDG_CACHE_HOME", "/trama"}, {"HOME", "/.cache/trama"}};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        const char *above = variable(caches[i].variable);
        if (!above || *above != '/')
            continue;
        text home = {0};
        text_add(&home, "%s%s", above, caches[i].below);
        bool good = is_home(home.at);
        if (good)
            environment_set("STARPU_HOME", home.at, true);
        free(home.at);
        if (good)
            return true;
    }
    return false;
}

static trama_status make_fresh(void)
{
    text path = {0};
    text_add(&path, "%s/trama-XXXXXX", variable("TMPDIR") ? variable("TMPDIR") : "/tmp");
    if (mkdtemp(path.at) && is_home(path.at)) {
        fresh = path.at;
        maker = getpid();
        environment_set("STARPU_HOME", fresh, true);
        return TRAMA_OK;
    }
    trama_status status = trama_fail(
        NOWHERE, TRAMA_E_SYSTEM,
        "StarPU needs a folder for its measurements, and none can be written: neither TRAMA_CACHE, XDG_CACHE_HOME, "
        "HOME/.cache nor %s (%s); name one by STARPU_HOME",
        path.at, strerror(errno));
    rmdir(path.at);
    free(path.at);
    return status;
}

trama_status home_find(void)
{
    const char *models = variable("STARPU_PERF_MODEL_DIR"), *home = variable("STARPU_HOME");
    if (models && !can_write(models))
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "STARPU_PERF_MODEL_DIR is \"%s\", where nothing can be written: %s",
                          models, strerror(errno));
    if (home && !is_home(home))
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "STARPU_HOME is \"%s\", where nothing can be written: %s", home,
                          strerror(errno));
    trama_status status = home || find_cache() ? TRAMA_OK : make_fresh();
    if (!status)
        hide_cache();
    return status;
}

static void remove_folder(int parent, const char *name)
{
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    DIR *all = folder < 0 ? NULL : fdopendir(folder);
    for (struct dirent *each; all && (each = readdir(all));)
        if (strcmp(each->d_name, ".") && strcmp(each->d_name, "..") && unlinkat(folder, each->d_name, 0))
            remove_folder(folder, each->d_name);
    if (all)
        closedir(all);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void home_leave(void)
{
    home_found();
    if (fresh && maker == getpid())
        remove_folder(AT_FDCWD, fresh);
    free(fresh);
    fresh = NULL;
}
