/* Names of mappings from the kernel, Ruby, glibc and others. */
#include "process/mapping_names.h"

#include "check.h"

static void check_use(const char *path, const char *use)
{
    const char *found = culet_mapping_special_use(path);

    CHECK(use ? found && strcmp(found, use) == 0 : !found, "%s is %s, not %s", path, found ? found : "nothing",
          use ? use : "nothing");
}

TEST(special_names)
{
    check_use("[stack]", "stack");
    check_use("[vdso]", "kernel");
    check_use("[vvar_vclock]", "kernel");
    check_use("[vsyscall]", "kernel");
    check_use("[uprobes]", "kernel");
    check_use("[heap]", NULL);
    check_use("", NULL);
    check_use("/usr/lib/libjemalloc.so.2", NULL);
}

TEST(names_of_anonymous_mappings)
{
    check_use("[anon:Ruby:GC:default:heap_page_body_allocate]", "ruby");
    check_use("[anon:mmtk:space:immix]", "ruby");
    check_use("[anon:mmtk:sidemeta:immix:IX_LINE_MARK_TABLE]", "ruby");
    check_use("[anon:Ruby:fiber_pool_allocate_memory]", "fiber");
    check_use("[anon:Ruby:rb_yjit_reserve_addr_space]", "jit");
    check_use("[anon:Ruby:rb_jit_reserve_addr_space:fallback]", "jit");
    check_use("[anon:Ruby:nt_alloc_thread_stack_chunk]", "stack");
    check_use("[anon:Ruby:Init_default_shapes:shape_list]", "other");
    check_use("[anon: glibc: pthread stack: 4242]", "stack");
    check_use("[anon: glibc: malloc arena]", "malloc");
    check_use("[anon:jemalloc_pg]", "malloc");
    check_use("[anon:mimalloc]", "malloc");
    check_use("[anon:tcmalloc_region_NORMAL]", "malloc");
    check_use("[anon:anything]", NULL);
}

TEST(names_of_files)
{
    CHECK(strcmp(culet_mapping_base("/usr/lib/libc.so.6"), "libc.so.6") == 0, "the part after the last slash");
    CHECK(strcmp(culet_mapping_base("plain"), "plain") == 0, "no slash");
    CHECK(strcmp(culet_mapping_base(""), "") == 0, "nothing");
}

CHECK_MAIN
