// SPDX-License-Identifier: Apache-2.0
#include "encoder.hpp"

#include <algorithm>
#include <map>

namespace emulator::ptx {

namespace {

constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

const std::map<std::string_view, void (*)(encoder&, const instruction&, operation&)>& opcodes() {
  static const auto all = [] {
    std::map<std::string_view, void (*)(encoder&, const instruction&, operation&)> m;
    for (const auto family : {arithmetic_opcodes(), real_opcodes(), bit_opcodes(), comparison_opcodes(),
                              conversion_opcodes(), memory_opcodes(), meeting_opcodes()})
      for (const opcode& o : family) m.emplace(o.name, o.decode);
    return m;
  }();
  return all;
}

/// `name + number`, with nothing behind the name where there is no number.
std::pair<std::string_view, std::int64_t> split_sum(std::string_view s) {
  std::size_t sign = s.find('+');
  if (sign == std::string_view::npos) sign = s.find('-', 1);
  std::uint64_t offset = 0;
  if (sign == std::string_view::npos || s.starts_with('-')) return {s, 0};
  const std::string_view number = trimmed(s.substr(s[sign] == '+' ? sign + 1 : sign));
  if (!read_number(number, offset)) return {s, 0};
  return {trimmed(s.substr(0, sign)), static_cast<std::int64_t>(offset)};
}

}  // namespace

void encoder::refuse(const std::string& what) const {
  ptx::refuse(now_ != nullptr ? now_->line : 0,
              what + (now_ != nullptr ? " in '" + one_line(now_->text) + "'" : ""));
}

slot encoder::new_slot(std::size_t bytes) {
  const std::size_t all = bytes == 0 ? sizeof(lane_mask) : std::max<std::size_t>(bytes, 2) * warp_size;
  const std::size_t at = round_up(program_.register_bytes, std::min<std::size_t>(all, 64));
  program_.register_bytes = at + all;
  return static_cast<slot>(at);
}

slot encoder::constant(std::uint64_t bits, std::size_t bytes) {
  if (bytes > 0 && bytes < 8) bits &= (std::uint64_t{1} << 8 * bytes) - 1;
  const auto [at, fresh] = constants_.try_emplace({bits, bytes}, 0);
  if (fresh) {
    at->second = new_slot(bytes);
    program_.constants.push_back({at->second, bytes, bits});
  }
  return at->second;
}

const encoder::reg* encoder::find_register(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) || name[0] == '-') return nullptr;
  const std::string_view family = name.substr(0, name.find_last_not_of("0123456789") + 1);
  auto& scopes = frames_.back().scopes;
  for (auto s = scopes.rbegin(); s != scopes.rend(); ++s) {
    if (const auto found = s->registers.find(name); found != s->registers.end()) return &found->second;
    const auto declared = s->families.find(family);
    if (declared == s->families.end() || family.size() == name.size()) continue;
    const scalar type = declared->second;
    return &(s->registers[name] = {new_slot(type == scalar::pred ? 0 : size_of(type)), type});
  }
  return nullptr;
}

const encoder::memory_name* encoder::find_memory(std::string_view name) const {
  const auto& scopes = frames_.back().scopes;
  for (auto s = scopes.rbegin(); s != scopes.rend(); ++s)
    if (const auto found = s->memory.find(name); found != s->memory.end()) return &found->second;
  return nullptr;
}

slot encoder::special_register(std::string_view name, std::size_t bytes) {
  const special* const found = find_special(name);
  if (found == nullptr) refuse("unknown register " + std::string(name));
  if (found->bytes != bytes) refuse("a special register of another size");
  const auto [at, fresh] = specials_.try_emplace(found, 0);
  if (fresh) {
    at->second = new_slot(bytes);
    program_.specials.emplace_back(at->second, found);
  }
  return at->second;
}

/// Addresses are offsets within their space, but for those of global and constant memory.
slot encoder::address_of(std::string_view sum, std::size_t bytes) {
  const auto [name, offset] = split_sum(sum);
  if (const memory_name* m = find_memory(name))
    return constant(static_cast<std::uint64_t>(m->offset + offset), bytes);
  for (const variable& v : module_.variables()) {
    if (v.name != name) continue;
    if (v.where == space::shared && v.external) {  // behind all other shared memory
      const slot at = new_slot(bytes);
      shared_alignment_ = std::max(shared_alignment_, v.alignment);
      behind_shared_.push_back(program_.constants.size());
      program_.constants.push_back({at, bytes, static_cast<std::uint64_t>(offset)});
      return at;
    }
    if (v.where == space::shared) {
      const auto [at, fresh] = shared_.try_emplace(name, 0);
      if (fresh) {
        at->second = static_cast<std::int64_t>(round_up(program_.shared_bytes, v.alignment));
        program_.shared_bytes = static_cast<std::size_t>(at->second) + v.bytes();
      }
      return constant(static_cast<std::uint64_t>(at->second + offset), bytes);
    }
    if (bytes != 8) refuse("an address of " + std::to_string(8 * bytes) + " bits");
    const slot at = new_slot(8);
    program_.relocations.push_back({at, v.name, offset});
    return at;
  }
  refuse("unknown name " + std::string(name));
}

slot encoder::destination(std::string_view name, std::size_t bytes) {
  if (name == "_") return new_slot(bytes);
  const reg* r = find_register(name);
  if (r == nullptr) refuse(std::string(name) + " is no register");
  if (r->type == scalar::pred ? bytes != 0 : size_of(r->type) != bytes)
    refuse("the register " + std::string(name) + " has another size");
  return r->where;
}

slot encoder::source(std::string_view name, std::size_t bytes) {
  if (find_register(name) != nullptr) return destination(name, bytes);
  std::uint64_t bits = 0;
  if (read_number(name, bits)) return constant(bits, bytes);
  if (name == "WARP_SZ") return constant(warp_size, bytes);
  if (name.starts_with('%')) return special_register(name, bytes);
  return address_of(name, bytes);
}

void encoder::take(const instruction& i, operation& o, std::initializer_list<std::size_t> bytes) {
  slot operation::*const sources[] = {&operation::a, &operation::b, &operation::c, &operation::e};
  auto next = bytes.begin();
  o.d = destination(i.operands.at(0), *next++);
  for (std::size_t n = 1; next != bytes.end(); ++n) o.*sources[n - 1] = source(i.operands.at(n), *next++);
}
slot encoder::predicate(std::string_view name) {
  std::uint64_t bits = 0;
  if (read_number(name, bits)) return constant(bits != 0, 0);
  return destination(name, 0);
}

std::size_t encoder::width(std::string_view name) const {
  const reg* r = const_cast<encoder*>(this)->find_register(name);
  return r == nullptr || r->type == scalar::pred ? 0 : size_of(r->type);
}
bool encoder::is_predicate(std::string_view name) const {
  const reg* r = const_cast<encoder*>(this)->find_register(name);
  return r != nullptr && r->type == scalar::pred;
}

encoder::address encoder::address_in(std::string_view operand, space said) {
  if (!operand.starts_with('[') || !operand.ends_with(']')) refuse("expected an address");
  const auto [name, offset] = split_sum(trimmed(operand.substr(1, operand.size() - 2)));
  if (const reg* r = find_register(name)) {
    if (size_of(r->type) != 8 && !(size_of(r->type) == 4 && said == space::shared))
      refuse("an address in a register of " + std::to_string(8 * size_of(r->type)) + " bits");
    if (size_of(r->type) == 8) return {space::generic, r->where, offset};
    return {space::reg, r->where, offset};
  }
  const memory_name* m = find_memory(name);
  std::uint64_t number = 0;
  if (read_number(name, number)) return {space::generic, constant(number, 8), offset};
  return {m != nullptr ? m->where : space::generic, address_of(name, 8), offset};
}

std::optional<std::int64_t> encoder::parameter_at(slot base, std::int64_t offset, std::size_t bytes) const {
  for (const program::constant& c : program_.constants) {
    if (c.where != base) continue;
    const std::int64_t at = static_cast<std::int64_t>(c.bits) + offset;
    const bool inside = at >= 0 && static_cast<std::size_t>(at) + bytes <= program_.parameter_bytes;
    if (inside && static_cast<std::size_t>(at) % bytes == 0) return at;
  }
  return std::nullopt;
}

void encoder::add(const variable& v) {
  if (v.where == space::reg) {
    if (v.several)
      innermost().families[v.name] = v.type;
    else
      innermost().registers[v.name] = {new_slot(v.type == scalar::pred ? 0 : size_of(v.type)), v.type};
    return;
  }
  const bool shared = v.where == space::shared;
  std::size_t& bytes = shared ? program_.shared_bytes : program_.local_bytes;
  bytes = round_up(bytes, v.alignment);
  innermost().memory[v.name] = {shared ? space::shared : space::local, static_cast<std::int64_t>(bytes)};
  bytes += v.bytes();
}

void encoder::add(const label& l) { innermost().labels[l.name] = here(); }
void encoder::add(const branch_targets& t) { innermost().label_lists[t.name] = t.labels; }

/// What is not found within the braces may lie outside of them.
void encoder::add(const scope& s) {
  auto& scopes = frames_.back().scopes;
  if (s.begins) {
    scopes.emplace_back();
    return;
  }
  const scope_names names = std::move(scopes.back());
  scopes.pop_back();
  const bool outermost = scopes.empty();
  const auto find = [&](std::string_view name) -> const std::uint32_t* {
    const auto found = names.labels.find(name);
    if (found == names.labels.end() && outermost) refuse("unknown label " + std::string(name));
    return found == names.labels.end() ? nullptr : &found->second;
  };
  for (const auto& [at, name] : names.jumps) {
    operation& o = program_.code[at];
    if (o.what == flow::branch) {
      if (const std::uint32_t* target = find(name))
        o.target = *target;
      else
        innermost().jumps.emplace_back(at, name);
      continue;
    }
    const auto list = names.label_lists.find(name);
    if (list == names.label_lists.end() && outermost) refuse("unknown list of labels " + std::string(name));
    const bool complete =
        list != names.label_lists.end() &&
        std::ranges::all_of(list->second, [&](std::string_view l) { return find(l) != nullptr; });
    if (!complete) {
      if (list != names.label_lists.end()) innermost().label_lists.insert(*list);
      innermost().jumps.emplace_back(at, name);
      continue;
    }
    std::vector<std::uint32_t> table;
    for (const std::string_view l : list->second) table.push_back(*find(l));
    o.target = static_cast<std::uint32_t>(program_.tables.size());
    program_.tables.push_back(std::move(table));
  }
}

void encoder::add(const instruction& i) try {
  now_ = &i;
  operation o;
  o.source = &i;
  if (!i.guard.empty()) {
    o.guard = predicate(i.guard);
    o.unless = i.unless;
  }
  const std::string_view name = i.name();
  if (name == "bra" || name == "brx") return add_branch(i, o);
  if (name == "call") return add_call(i);
  if (name == "exit" || (name == "ret" && frames_.size() == 1)) {
    o.what = flow::exit;
    return append(o);
  }
  if (name == "ret") {
    o.what = flow::branch;
    frames_.back().returns.push_back(here());
    return append(o);
  }
  const auto known = opcodes().find(name);
  if (known == opcodes().end()) refuse("unknown instruction");
  known->second(*this, i, o);
  if (o.what == flow::plain && o.run == nullptr) refuse("unknown form of an instruction");
  append(o);
} catch (const std::out_of_range&) {
  refuse("too few operands");
}

void encoder::add_branch(const instruction& i, operation o) {
  const bool table = i.name() == "brx";
  o.what = table ? flow::table : flow::branch;
  if (table) o.a = source(i.operands.at(0), 4);
  innermost().jumps.emplace_back(here(), i.operands.at(table ? 1 : 0));
  append(o);
}

/// The function becomes part of the kernel: its parameters are the memory that the caller names.
void encoder::add_call(const instruction& i) {
  if (!i.guard.empty()) refuse("a call with a guard");
  std::vector<std::string_view> operands = i.operands;
  const auto is_list = [](std::string_view s) { return s.starts_with('('); };
  const auto memory_of = [&](std::string_view list) {
    std::vector<memory_name> memory;
    for (const std::string_view name : split_list(list.substr(1, list.size() - 2))) {
      const memory_name* const m = find_memory(name);
      if (m == nullptr) refuse("an argument that is no parameter variable");
      memory.push_back(*m);
    }
    return memory;
  };
  std::vector<memory_name> results, arguments;
  if (is_list(operands.at(0))) {
    results = memory_of(operands[0]);
    operands.erase(operands.begin());
  }
  const std::string_view name = operands.at(0);
  if (operands.size() > 1 && is_list(operands[1])) arguments = memory_of(operands[1]);
  const auto found = module_.functions().find(name);
  if (found == module_.functions().end()) refuse("a call by a pointer");
  const function& f = found->second;
  if (!f.is_defined) return add_builtin(name, results, arguments);
  if (std::ranges::any_of(frames_, [&](const frame& other) { return other.what == &f; }))
    refuse("recursion, which would need a stack,");
  if (results.size() != f.results.size() || arguments.size() != f.parameters.size())
    refuse("another number of arguments than the function has");
  frames_.push_back({&f});
  for (std::size_t n = 0; n < results.size(); ++n) innermost().memory[f.results[n].name] = results[n];
  for (std::size_t n = 0; n < arguments.size(); ++n) innermost().memory[f.parameters[n].name] = arguments[n];
  encode_body(f);
  for (const std::uint32_t at : frames_.back().returns) program_.code[at].target = here();
  frames_.pop_back();
}

void encoder::encode_body(const function& f) {
  for (const statement& s : f.body) std::visit([&](const auto& one) { add(one); }, s);
  add(scope{false});
}

void encoder::encode(const function& kernel) {
  program_.name = kernel.name;
  program_.most_threads = kernel.most_threads;
  // They read behind the part of a tile that they use, and discard it.
  program_.may_read_poison = kernel.name.starts_with("_ZN3cub") || kernel.name.starts_with("_ZN6thrust");
  constant(1, 0);  // `always`
  frames_.push_back({&kernel});
  for (const variable& p : kernel.parameters) {
    const std::size_t at = round_up(program_.parameter_bytes, p.alignment);
    program_.parameters.push_back({at, p.bytes()});
    innermost().memory[p.name] = {space::param, static_cast<std::int64_t>(at)};
    program_.parameter_bytes = at + p.bytes();
  }
  encode_body(kernel);
  operation end;
  end.what = flow::exit;
  append(end);
  program_.local_bytes = round_up(program_.local_bytes, 16);
  program_.shared_bytes = round_up(program_.shared_bytes, shared_alignment_);
  for (const std::size_t c : behind_shared_) program_.constants[c].bits += program_.shared_bytes;
}

program decode(const module& m, const function& kernel) {
  program p;
  encoder(m, p).encode(kernel);
  return p;
}

}  // namespace emulator::ptx
