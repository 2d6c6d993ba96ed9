# A deployment as a stack of CloudFormation, beside other resources. Nobody has tried this file.
variable "bucket" { type = string } # that `sam package` was given

data "aws_s3_bucket" "zips" { bucket = var.bucket }

resource "aws_s3_object" "template" { # too large for template_body
  bucket = data.aws_s3_bucket.zips.id
  key    = "agents/${filemd5("packaged.yaml")}.yaml"
  source = "packaged.yaml"
}

resource "aws_sns_topic" "alarms" { name = "agents-alarms" }

resource "aws_cloudformation_stack" "agents" {
  name         = "agents"
  template_url = "https://${data.aws_s3_bucket.zips.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
  parameters   = { AlarmTopicArn = aws_sns_topic.alarms.arn }
}

output "url" { value = aws_cloudformation_stack.agents.outputs["ApiUrl"] }
