// A deployment in a stack of a CDK application, whose other parts find its address.
import { App, Stack } from "aws-cdk-lib";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";
import { StringParameter } from "aws-cdk-lib/aws-ssm";

const stack = new Stack(new App(), "agents");
const agents = new CfnInclude(stack, "Agents", {
  templateFile: "packaged.yaml",
  parameters: { Console: "on" }, // texts: conditions of the template read them before there is any resource
});
new StringParameter(stack, "Address", { parameterName: "/agents/url", stringValue: agents.getOutput("ApiUrl").value });
