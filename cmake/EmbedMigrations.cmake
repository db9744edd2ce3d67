# Writes a C++ file with the migrations in it, so that the server is one file:
#   cmake -DOUTPUT=migrations.cc "-DMIGRATIONS=a.sql;b.sql" -P this-file
# A migration is NNNN_name.sql; the number is the version that it makes.
set(entries "")
foreach(path IN LISTS MIGRATIONS)
  get_filename_component(name ${path} NAME_WE)
  if(NOT name MATCHES "^0*([1-9][0-9]*)_")
    message(FATAL_ERROR "${path}: not named NNNN_name.sql")
  endif()
  set(version ${CMAKE_MATCH_1})
  file(READ ${path} sql)
  string(APPEND entries
    "    {${version}, \"${name}\", R\"cubicml_sql(${sql})cubicml_sql\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made from storage/migrations by the build.
#include \"storage/schema.h\"

namespace cubicml {
namespace {

constexpr Migration kMigrations[] = {
${entries}};

}  // namespace

std::span<const Migration> Migrations() { return kMigrations; }

}  // namespace cubicml
")
