"""Parses statements and blocks (chapter 36 sections 3, 8, 11.1 and 13)."""

from __future__ import annotations

from conduit.rhai.errors import ParseError
from conduit.rhai.nodes import (
    SELF_TERMINATED,
    Assign,
    Binary,
    Block,
    Break,
    Call,
    Case,
    Chain,
    Continue,
    DoWhile,
    Empty,
    Export,
    Expression,
    ExpressionStatement,
    For,
    If,
    Import,
    Let,
    Literal,
    MethodStep,
    Return,
    Statement,
    StatementExpression,
    Switch,
    This,
    Throw,
    Try,
    Variable,
    While,
    is_constant,
    is_range_literal,
)
from conduit.rhai.parser_base import NO_START
from conduit.rhai.parser_expressions import ExpressionParser
from conduit.rhai.tokens import ASSIGNMENTS, Token

_COMPOUND = frozenset({"if", "switch", "while", "loop", "do", "for"})


class StatementParser(ExpressionParser):
    """Everything inside a body."""

    def statement(self, level: int, top: bool = False) -> Statement:
        """One statement, without its `;`. `top` means global level. Raises ParseError."""
        token = self.peek()
        self.at = token.position
        kind = token.kind
        if kind == ";":
            self.next()
            return Empty(token.position)
        if kind in ("fn", "private"):
            self.misplaced_function(token.position if self.functions_allowed else None)
        level = self.deeper(level)
        if kind == "{":
            return self.block(level)
        if kind in _COMPOUND:
            return self.compound(level)
        if kind in ("let", "const"):
            return self._let(level, exported=False)
        if kind in ("break", "continue", "return", "throw"):
            return self._jump(level)
        if kind == "try":
            return self._try(level)
        if kind == "import":
            return self._import(level)
        if kind == "export":
            if not top:
                message = "Export statement can only appear at global level"
                self.fail("WrongExport", message, token.position)
            return self._export(level)
        return self._expression_statement(level)

    def block(self, level: int) -> Block:
        """`{ … }`; the closing brace is the last token read. Raises ParseError."""
        opening = self.expect("{", "to start a statement block")
        self.at = opening.position
        level = self.deeper(level)
        self.scope.enter()
        statements: list[Statement] = []
        while True:
            token = self.peek()
            if token.kind == "}":
                self.next()
                break
            if token.kind == "end":
                self.missing("}", "to terminate this block", token.position)
            statement = self.statement(level)
            if isinstance(statement, Empty):
                continue
            statements.append(statement)
            token = self.peek()
            if token.kind == ";":
                self.next()
            elif token.kind == "}":
                continue
            elif not isinstance(statement, SELF_TERMINATED):
                if token.kind == "end":
                    self.missing("}", "to terminate this block", token.position)
                self.missing(";", "to terminate this statement", token.position)
        self.scope.leave()
        return Block(opening.position, statements)

    def compound(self, level: int) -> Statement:
        """The `if`, `switch` or loop whose keyword comes next."""
        token = self.peek()
        self.at = token.position
        if token.kind == "if":
            return self._if(level)
        if token.kind == "switch":
            return self._switch(level)
        if token.kind in ("while", "loop"):
            return self._while(level)
        if token.kind == "do":
            return self._do(level)
        return self._for(level)

    # Simple statements

    def _expression_statement(self, level: int) -> Statement:
        expression = self.expression(level)
        token = self.peek()
        if token.kind not in ASSIGNMENTS:
            return ExpressionStatement(expression.position, expression)
        self.next()
        value = self.expression(level)
        self._check_target(expression, token)
        return Assign(token.position, expression, token.kind, value)

    def _check_target(self, target: Expression, operator: Token) -> None:
        if isinstance(target, Variable):
            info = target.info
            if info is not None and info.const and info.kind == "local":
                message = f"Cannot assign to constant {target.name}"
                self.fail("AssignmentToConstant", message, target.position)
            return
        if isinstance(target, This):
            return
        if isinstance(target, Chain):
            for step in target.steps:
                if isinstance(step, MethodStep):
                    self.fail(
                        "AssignmentToInvalidLHS", "Expression cannot be assigned to", step.position
                    )
            if isinstance(target.root, Variable | This):
                return
            position = target.root.position
        elif isinstance(target, Binary) and target.operator in ("&&", "||"):
            self.lexical("ImproperSymbol", "Possibly a typo of '=='?", operator.position)
        elif is_constant(target):
            message = "Cannot assign to a constant value"
            self.fail("AssignmentToConstant", message, target.position)
        else:
            position = target.position
        self.fail("AssignmentToInvalidLHS", "Expression cannot be assigned to", position)

    def _let(self, level: int, exported: bool) -> Let:
        keyword = self.next()
        const = keyword.kind == "const"
        name = self.variable_name()
        value: Expression | None = None
        if self.take("="):
            self.at = self.peek().position
            value = self.expression(self.deeper(level))
        info = self.scope.declare(name.value, const)
        if const and value is not None and is_constant(value):
            info.literal = value
        elif const and value is None:
            info.literal = Literal(name.position, None)
        return Let(keyword.position, name.value, value, const, exported, info, self.scope.live)

    def _operand(self, level: int) -> Expression | None:
        if self.peek().kind in NO_START:
            return None
        return self.expression(level)

    def _jump(self, level: int) -> Statement:
        token = self.next()
        position = token.position
        if token.kind == "return":
            return Return(position, self._operand(level))
        if token.kind == "throw":
            return Throw(position, self._operand(level))
        if not self.in_loop:
            message = "Break statement should only be used inside a loop"
            self.fail("LoopBreak", message, position)
        if token.kind == "continue":
            return Continue(position)
        return Break(position, self._operand(level))

    def jump(self, level: int) -> StatementExpression:
        """`break`, `continue`, `return` or `throw` on the right of `??`."""
        position = self.peek().position
        return StatementExpression(position, self._jump(self.deeper(level)))

    def _import(self, level: int) -> Statement:
        keyword = self.next()
        self.at = keyword.position
        level = self.deeper(level)
        path = self.expression(level)
        alias = self.variable_name().value if self.take("as") else None
        return Import(keyword.position, path, alias)

    def _export(self, level: int) -> Statement:
        keyword = self.next()
        self.at = keyword.position
        level = self.deeper(level)
        if self.peek().kind in ("let", "const"):
            return self._let(level, exported=True)
        name = self.variable_name()
        alias = self.variable_name().value if self.take("as") else None
        info = self.scope.find(name.value, name.position)
        return Export(keyword.position, name.value, alias, info, name.position)

    # Branches

    def _condition(self, level: int) -> Expression:
        self.not_a_block()
        condition = self.must_be_bool(self.expression(level))
        self.not_assigned()
        return condition

    def _if(self, level: int) -> If:
        keyword = self.next()
        self.at = keyword.position
        level = self.deeper(level)
        condition = self._condition(level)
        then = self.block(level)
        otherwise: Block | If | None = None
        if self.take("else"):
            otherwise = self._if(level) if self.peek().kind == "if" else self.block(level)
        return If(keyword.position, condition, then, otherwise)

    def _switch(self, level: int) -> Switch:
        keyword = self.next()
        self.at = keyword.position
        level = self.deeper(level)
        value = self.expression(level)
        self.expect("{", "to start a switch block")
        cases: list[Case] = []
        default: Token | None = None
        has_ranges = False
        while not self.take("}"):
            token = self.peek()
            if token.kind == "end":
                self.missing("}", "to end this switch block", token.position)
            if default is not None:
                message = "Default switch case must be the last"
                self.fail("WrongSwitchDefaultCase", message, default.position)
            condition: Expression | None = None
            values: list[Expression] = []
            if token.kind == "_":
                default = self.next()
                if self.peek().kind == "if":
                    message = "This switch case cannot have a condition"
                    self.fail("WrongSwitchCaseCondition", message, self.peek().position)
            else:
                values, has_ranges = self._case_values(level, has_ranges)
                if self.take("if"):
                    condition = self._condition(level)
            self.expect("=>", "in this switch case")
            self.scope.enter()
            action = self.statement(level)
            self.scope.leave()
            cases.append(Case(values, condition, action))
            self._after_action(action)
        return Switch(keyword.position, value, cases)

    def _case_values(self, level: int, has_ranges: bool) -> tuple[list[Expression], bool]:
        values: list[Expression] = []
        while True:
            try:
                value = self.case_value(level)
            except ParseError as error:
                message = "Expecting literal expression"
                raise ParseError("parse:ExprExpected", message, error.position) from None
            if is_range_literal(value):
                has_ranges = True
            elif not is_constant(value) and not _is_pointer(value):
                message = "Expecting a literal expression"
                self.fail("ExprExpected", message, value.position)
            elif has_ranges and isinstance(value, Literal) and type(value.value) in (int, float):
                message = "Numeric switch case cannot follow a range case"
                self.fail("WrongSwitchIntegerCase", message, value.position)
            values.append(value)
            if not self.take("|"):
                return values, has_ranges

    def _after_action(self, action: Statement) -> None:
        token = self.peek()
        if token.kind == ",":
            self.next()
        elif token.kind == "end":
            self.missing("}", "to end this switch block", token.position)
        elif token.kind != "}" and not isinstance(action, SELF_TERMINATED):
            self.missing(",", "to separate the items in this switch block", token.position)

    # Loops

    def _body(self, level: int) -> Block:
        outside = self.in_loop
        self.in_loop = True
        try:
            return self.block(level)
        finally:
            self.in_loop = outside

    def _while(self, level: int) -> While:
        keyword = self.next()
        self.at = keyword.position
        level = self.deeper(level)
        condition = self._condition(level) if keyword.kind == "while" else None
        return While(keyword.position, condition, self._body(level))

    def _do(self, level: int) -> DoWhile:
        keyword = self.next()
        self.at = keyword.position
        level = self.deeper(level)
        body = self._body(level)
        until = self.peek().kind == "until"
        if until:
            self.next()
        else:
            self.expect("while", "for the do statement")
        return DoWhile(keyword.position, body, self._condition(level), until)

    def _for(self, level: int) -> For:
        keyword = self.next()
        self.at = keyword.position
        level = self.deeper(level)
        counter: str | None = None
        if self.take("("):
            variable = self.variable_name().value
            self.expect(",", "after the iteration variable name")
            second = self.variable_name()
            counter = second.value
            if counter == variable:
                message = f"Duplicated variable name: {counter}"
                self.fail("DuplicatedVariable", message, second.position)
            self.expect(")", "to close the iteration variable")
        else:
            variable = self.variable_name().value
        self.expect("in", "after the iteration variable")
        self.not_a_block()
        iterable = self.must_be_iterable(self.expression(level))
        self.scope.enter()
        counter_info = None if counter is None else self.scope.declare(counter)
        info = self.scope.declare(variable)
        live = self.scope.live
        body = self._body(level)
        self.scope.leave()
        return For(keyword.position, variable, counter, iterable, body, info, counter_info, live)

    def _try(self, level: int) -> Try:
        keyword = self.next()
        self.at = keyword.position
        level = self.deeper(level)
        body = self.block(level)
        self.expect("catch", "for the 'try' statement")
        name: str | None = None
        self.scope.enter()
        info = None
        if self.take("("):
            name = self.variable_name().value
            self.expect(")", "to enclose the catch variable")
            info = self.scope.declare(name)
        live = self.scope.live
        handler = self.block(level)
        self.scope.leave()
        return Try(keyword.position, body, name, handler, info, live)


def _is_pointer(node: Expression) -> bool:
    """Whether the node is `Fn("name")`."""
    return (
        isinstance(node, Call)
        and node.name == "Fn"
        and not node.path
        and len(node.arguments) == 1
        and isinstance(node.arguments[0], Literal)
        and type(node.arguments[0].value) is str
    )
