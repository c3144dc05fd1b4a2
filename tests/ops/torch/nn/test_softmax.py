from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.nn.softmax")
