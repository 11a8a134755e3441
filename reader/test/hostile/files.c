/* Symbols of hostile files: damaged, truncated while they are read, or no regular files. */
#define _GNU_SOURCE
#include "process/elf_file.h"

#include "check.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>

/* The C library of this program. */
static struct culet_mapping library(void)
{
    struct culet_maps maps;

    CHECK(culet_maps_read(&maps, getpid(), false), "no mappings");
    for (size_t i = 0; i < maps.count; i++)
        if (strstr(maps.all[i].path, "/libc.so.6") && maps.all[i].offset == 0)
            return maps.all[i];
    CHECK(false, "no C library");
    return (struct culet_mapping){0};
}

/* A mapping of a file that no process has mapped: found by its path. */
static struct culet_mapping mapping_of(char *path)
{
    struct stat status;

    CHECK(stat(path, &status) == 0, "%s is not there", path);
    return (struct culet_mapping){.start = 4096, .end = 8192, .inode = status.st_ino, .path = path};
}

struct copy {
    char path[64];
    int file;
    size_t length;
    unsigned char *bytes; /* as they were */
};

static struct copy copy_of(const char *path)
{
    struct copy copy = {.path = "/tmp/culet-elf-XXXXXX"};
    struct stat status;
    int from = open(path, O_RDONLY);

    CHECK(from >= 0 && fstat(from, &status) == 0, "%s cannot be read", path);
    copy.length = (size_t)status.st_size;
    copy.bytes = malloc(copy.length);
    copy.file = mkstemp(copy.path);
    CHECK(copy.file >= 0 && read(from, copy.bytes, copy.length) == (ssize_t)copy.length &&
              write(copy.file, copy.bytes, copy.length) == (ssize_t)copy.length,
          "no copy");
    close(from);
    return copy;
}

static void end_copy(struct copy *copy)
{
    unlink(copy->path);
    close(copy->file);
    free(copy->bytes);
}

static void look_up_all(struct culet_elf *elf)
{
    char text[32];
    uint64_t offset;

    culet_elf_got_entry(elf, "malloc", &offset);
    culet_elf_defines(elf, "no_such_function");
    culet_elf_defines(elf, "malloc");
    if (culet_elf_text(elf, "gnu_get_libc_version", text, sizeof text))
        CHECK(memchr(text, 0, sizeof text), "a text without an end");
}

TEST(a_sound_file)
{
    struct culet_mapping mapping = library();
    struct culet_elf elf;
    uint64_t offset;

    CHECK(culet_elf_open(&elf, getpid(), &mapping), "it cannot be opened");
    CHECK(culet_elf_defines(&elf, "malloc") && !culet_elf_defines(&elf, "mallocs"), "it has other functions");
    CHECK(culet_elf_got_entry(&elf, "malloc", &offset) && offset, "it does not call malloc");
    culet_elf_close(&elf);
}

/* An offset in the header, the section and segment tables, or the first 64 KiB. */
static size_t random_offset(const struct copy *copy, uint64_t *random)
{
    const Elf64_Ehdr *head = (const void *)copy->bytes;
    size_t sections = (size_t)head->e_shoff + check_random(random) % (head->e_shnum * sizeof(Elf64_Shdr));

    switch (check_random(random) % 4) {
    case 0:
        return check_random(random) % sizeof *head;
    case 1:
        return (size_t)head->e_phoff + check_random(random) % (head->e_phnum * sizeof(Elf64_Phdr));
    case 2:
        return check_random(random) % 65536;
    default:
        return sections;
    }
}

TEST(damaged_files)
{
    struct copy copy = copy_of(library().path);
    struct culet_mapping mapping = mapping_of(copy.path);
    unsigned count = getenv("CULET_TEST_ALL") ? 60000 : 2000;
    uint64_t random = 9;

    for (unsigned i = 0; i < count; i++) {
        size_t at[4], changed = 1 + check_random(&random) % 4;
        for (size_t n = 0; n < changed; n++) {
            uint64_t word = check_random(&random) % 2
                                ? check_random(&random)
                                : (UINT64_C(1) << check_random(&random) % 64) - check_random(&random) % 2;
            at[n] = random_offset(&copy, &random) % (copy.length - 8);
            CHECK(pwrite(copy.file, &word, 1u << check_random(&random) % 4, (off_t)at[n]) > 0,
                  "the copy cannot be changed");
        }
        struct culet_elf elf;
        if (culet_elf_open(&elf, getpid(), &mapping)) {
            look_up_all(&elf);
            culet_elf_close(&elf);
        }
        for (size_t n = 0; n < changed; n++)
            CHECK(pwrite(copy.file, copy.bytes + at[n], 8, (off_t)at[n]) == 8, "the copy cannot be mended");
    }
    CHECK(count, "nothing was tried");
    end_copy(&copy);
}

TEST(files_truncated_while_open)
{
    struct copy copy = copy_of(library().path);
    struct culet_mapping mapping = mapping_of(copy.path);

    for (size_t length = copy.length; length > 100; length = length / 3 * 2) {
        struct culet_elf elf;
        CHECK(ftruncate(copy.file, 0) == 0 && pwrite(copy.file, copy.bytes, copy.length, 0) == (ssize_t)copy.length,
              "no copy");
        CHECK(culet_elf_open(&elf, getpid(), &mapping), "it cannot be opened");
        CHECK(ftruncate(copy.file, (off_t)length) == 0, "it cannot be cut off");
        look_up_all(&elf);
        culet_elf_close(&elf);
    }
    end_copy(&copy);
}

/* The claimed length of a table costs neither memory nor time. */
TEST(tables_of_terabytes)
{
    struct copy copy = copy_of(library().path);
    struct culet_mapping mapping = mapping_of(copy.path);
    Elf64_Ehdr head;
    struct culet_elf elf;

    memcpy(&head, copy.bytes, sizeof head);
    CHECK(ftruncate(copy.file, INT64_C(1) << 42) == 0, "no long file");
    for (unsigned i = 1; i < head.e_shnum; i++) {
        uint64_t length = UINT64_C(1) << 41;
        off_t at = (off_t)(head.e_shoff + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size));
        CHECK(pwrite(copy.file, &length, sizeof length, at) == sizeof length, "the copy cannot be changed");
    }
    CHECK(culet_elf_open(&elf, getpid(), &mapping), "it cannot be opened");
    look_up_all(&elf);
    CHECK(!culet_elf_defines(&elf, "malloc"), "terabytes were read");
    culet_elf_close(&elf);
    end_copy(&copy);
}

/* Opening a device can have side effects, and a pipe blocks. */
TEST(no_regular_files)
{
    char pipe_path[64] = "/tmp/culet-pipe-XXXXXX", device[] = "/dev/zero", folder[] = "/tmp";
    struct culet_elf elf;
    struct culet_mapping mapping;
    int file = mkstemp(pipe_path);

    CHECK(file >= 0 && unlink(pipe_path) == 0 && mkfifo(pipe_path, 0600) == 0, "no pipe");
    close(file);
    char *paths[] = {pipe_path, device, folder};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        mapping = mapping_of(paths[i]);
        CHECK(!culet_elf_open(&elf, getpid(), &mapping), "%s was opened", paths[i]);
    }
    unlink(pipe_path);
}

CHECK_MAIN
